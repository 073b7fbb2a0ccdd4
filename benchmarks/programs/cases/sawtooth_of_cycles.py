"""Cycles that the collector finds now and then."""

from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model = Model()
    for _ in clock.steps():
        out, _ = model.train(batch())
        knot = {"out": out.detach().clone()}
        knot["self"] = knot


if __name__ == "__main__":
    run(train)
