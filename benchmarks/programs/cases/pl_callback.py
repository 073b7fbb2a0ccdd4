"""Lightning: a callback that remembers the batches with their losses."""

import sys

import torch
from _lightning import AutoEncoder, fit
from lightning import Callback, LightningModule, Trainer


class HardExamples(Callback):
    def __init__(self) -> None:
        self.found: list[tuple[float, torch.Tensor]] = []

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: dict, batch: torch.Tensor, i: int
    ) -> None:
        self.found.append((outputs["loss"].item(), batch))
        self.found.sort(key=lambda pair: -pair[0])


if __name__ == "__main__":
    fit(AutoEncoder(), float(sys.argv[1]), callbacks=[HardExamples()])
