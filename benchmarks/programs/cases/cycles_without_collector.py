"""Cycles, and the collector is switched off."""

import gc

import torch
from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    gc.disable()
    model = Model()
    for _ in clock.steps():
        model.train(batch())
        knot = {"tensor": torch.ones(16_384)}
        knot["self"] = knot


if __name__ == "__main__":
    run(train)
