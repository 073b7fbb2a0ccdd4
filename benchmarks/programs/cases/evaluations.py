"""Predictions of every evaluation, for a report that is never made."""

from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model, kept = Model(), []
    for step in clock.steps():
        model.train(batch())
        if step % 20 == 0:
            kept += model.evaluate(15)


if __name__ == "__main__":
    run(train)
