"""The batch grows in the first third of the time."""

from _training import BATCH, Clock, Model, batch, run


def train(clock: Clock) -> None:
    model = Model()
    for _ in clock.steps():
        model.train(batch(BATCH + int(2000 * min(1.0, 3 * clock.done))))


if __name__ == "__main__":
    run(train)
