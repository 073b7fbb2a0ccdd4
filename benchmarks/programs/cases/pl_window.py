"""Lightning: a callback with a window over the last 300 gradients."""

import collections
import sys

import torch
from _lightning import AutoEncoder, fit
from lightning import Callback, LightningModule, Trainer


class GradientNoise(Callback):
    def __init__(self, size: int = 300) -> None:
        self.window: collections.deque = collections.deque(maxlen=size)

    def on_before_optimizer_step(
        self, trainer: Trainer, module: LightningModule, optimizer: torch.optim.Optimizer
    ) -> None:
        self.window.append(torch.cat([p.grad.flatten() for p in module.parameters()]))


if __name__ == "__main__":
    fit(AutoEncoder(), float(sys.argv[1]), callbacks=[GradientNoise()])
