"""A small Lightning training that runs for a given time."""

from __future__ import annotations

import logging
import tempfile
import time
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Noise(Dataset):
    def __init__(self, length: int, width: int = 64) -> None:
        self.length, self.width = length, width

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.randn(self.width)


class AutoEncoder(lightning.LightningModule):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, width))

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        time.sleep(0.02)
        return nn.functional.mse_loss(self.net(batch), batch)

    def validation_step(self, batch: torch.Tensor, index: int) -> None:
        self.net(batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def fit(module: AutoEncoder, seconds: float, **options: object) -> None:
    """Train with an epoch of 30 batches and a validation of 5 after it."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu",
            max_epochs=-1,
            max_time={"seconds": seconds},
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
            **options,
        )
        began = time.time()
        trainer.fit(module, DataLoader(Noise(30 * 32), 32), DataLoader(Noise(5 * 32), 32))
    print(f"{trainer.global_step} steps in {time.time() - began:.1f} s")
