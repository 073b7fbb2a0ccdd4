"""A numpy array per step is kept."""

import numpy as np
from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model, kept = Model(), []
    for step in clock.steps():
        model.train(batch())
        kept.append(np.full(5000, float(step)))


if __name__ == "__main__":
    run(train)
