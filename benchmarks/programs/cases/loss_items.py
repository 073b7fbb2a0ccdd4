"""A list of numbers, as everybody keeps: 32 bytes per step."""

from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model, losses = Model(), []
    for _ in clock.steps():
        losses.append(model.train(batch())[1].item())


if __name__ == "__main__":
    run(train)
