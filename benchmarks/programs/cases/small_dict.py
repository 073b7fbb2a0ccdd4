"""1 KB and the object around it."""

import torch
from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model, store = Model(), {}
    for step in clock.steps():
        model.train(batch())
        store[step] = torch.ones(256)


if __name__ == "__main__":
    run(train)
