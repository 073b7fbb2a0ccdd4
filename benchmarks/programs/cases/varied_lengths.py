"""Batches of many sizes."""

from _training import BATCH, Clock, Model, batch, run


def train(clock: Clock) -> None:
    model = Model()
    for step in clock.steps():
        model.train(batch(BATCH + 37 * step * step % 1500))


if __name__ == "__main__":
    run(train)
