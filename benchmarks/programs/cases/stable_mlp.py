"""Nothing is kept."""

from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model = Model()
    for _ in clock.steps():
        model.train(batch())


if __name__ == "__main__":
    run(train)
