"""Lightning: what validation_step collects is never cleared at the end of the epoch."""

import sys

import torch
from _lightning import AutoEncoder, fit


class Collects(AutoEncoder):
    def __init__(self) -> None:
        super().__init__()
        self.validation_outputs: list[torch.Tensor] = []

    def validation_step(self, batch: torch.Tensor, index: int) -> None:
        self.validation_outputs.append(torch.cat([self.net(batch), batch], dim=1).repeat(8, 1))

    def on_validation_epoch_end(self) -> None:
        spread = torch.stack(self.validation_outputs[-5:]).std()
        self.log("spread", spread)


if __name__ == "__main__":
    fit(Collects(), float(sys.argv[1]))
