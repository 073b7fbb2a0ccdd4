"""Every output is kept."""

from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model, kept = Model(), []
    for _ in clock.steps():
        kept.append(model.train(batch(200))[0].detach())


if __name__ == "__main__":
    run(train)
