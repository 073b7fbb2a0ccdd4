"""A cache by key, which meets new ones in the first third of the time."""

import torch
from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model, features = Model(), {}
    for step in clock.steps():
        model.train(batch())
        keys = 300 if clock.done < 1 / 3 else max(1, len(features))
        features.setdefault(step % keys, torch.ones(8000))


if __name__ == "__main__":
    run(train)
