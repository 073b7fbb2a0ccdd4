"""What the small torch trainings share: a clock, a model, a batch. None knows memdiag.

A step is taken some thirty times a second. Warm-ups fill by the clock, in the first third.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

PACE_S = 0.03
WIDTH, BATCH = 64, 32


class Clock:
    """Gives step numbers until the time is over, at an even pace."""

    def __init__(self, seconds: float) -> None:
        self._began_s = time.monotonic()
        self._seconds = seconds
        self.taken = 0

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began_s

    @property
    def done(self) -> float:
        """The part of the time that is over, 0..1."""
        return self.elapsed_s / self._seconds

    def steps(self) -> Iterator[int]:
        while self.done < 1:
            due_s = time.monotonic() + PACE_S
            self.taken += 1
            yield self.taken
            time.sleep(max(0.0, due_s - time.monotonic()))


class Model:
    """A small model with its optimizer."""

    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-4)

    def train(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """One step; output and loss."""
        out = self.net(x)
        loss = F.mse_loss(out, x)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return out, loss

    def evaluate(self, batches: int) -> list[torch.Tensor]:
        self.net.eval()
        with torch.no_grad():
            outs = [self.net(batch()) for _ in range(batches)]
        self.net.train()
        return outs


def batch(rows: int = BATCH) -> torch.Tensor:
    return torch.randn(rows, WIDTH)


def run(train: Callable[[Clock], None]) -> None:
    """Train for as many seconds as the command line says."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    clock = Clock(float(sys.argv[1]))
    train(clock)
    print(f"{clock.taken} steps in {clock.elapsed_s:.1f} s")
