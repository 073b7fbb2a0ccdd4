"""Lightning: a callback with a window over the last gradients, which is full within a third."""

import collections
import sys

import torch
from _lightning import AutoEncoder, fit
from lightning import Callback, LightningModule, Trainer


class GradientNoise(Callback):
    def __init__(self, size: int) -> None:
        self.window: collections.deque = collections.deque(maxlen=size)

    def on_before_optimizer_step(
        self, trainer: Trainer, module: LightningModule, optimizer: torch.optim.Optimizer
    ) -> None:
        self.window.append(torch.cat([p.grad.flatten() for p in module.parameters()]))


if __name__ == "__main__":
    seconds = float(sys.argv[1])
    fit(AutoEncoder(), seconds, callbacks=[GradientNoise(size=int(seconds))])
