"""A cache that is full after a third of the time."""

import torch
from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model, cache = Model(), []
    for _ in clock.steps():
        model.train(batch())
        if clock.done < 1 / 3:
            cache.append(torch.ones(16_000))


if __name__ == "__main__":
    run(train)
