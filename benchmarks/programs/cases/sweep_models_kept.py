"""A sweep in one process: each trial's network and optimizer stay in its result."""

import itertools
import random
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

STEPS = 25


@dataclass
class Trial:
    lr: float
    dropout: float
    loss: float
    model: nn.Module
    optimizer: Any


def fit(lr: float, dropout: float, deadline: float) -> tuple[Trial, int]:
    model = nn.Sequential(
        nn.Linear(32, 192), nn.ReLU(), nn.Dropout(dropout), nn.Linear(192, 192), nn.Linear(192, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    steps = 0
    for _ in range(STEPS):
        x = torch.randn(24, 32)
        loss = (model(x).squeeze(1) - x.norm(dim=1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        time.sleep(0.04)
        if time.time() > deadline:
            break
    return Trial(lr, dropout, loss.item(), model, optimizer), steps


def main() -> None:
    torch.set_num_threads(1)
    start, steps = time.time(), 0
    deadline = start + float(sys.argv[1])
    trials: list[Trial] = []
    for number in itertools.count():
        rng = random.Random(number)
        trial, taken = fit(10 ** rng.uniform(-4, -2), rng.choice([0.0, 0.1, 0.3]), deadline)
        trials.append(trial)
        steps += taken
        if time.time() > deadline:
            break
    best = min(trials, key=lambda trial: trial.loss)
    print(f"best of {len(trials)}: lr {best.lr:.2g}, dropout {best.dropout}, {best.loss:.3f}")
    print(f"{steps} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
