"""A dictionary of numpy metrics, one entry more per class and step."""

import argparse
import time

import numpy as np
import torch
from torch import nn

CLASSES = ("cat", "dog", "bird", "fish")


class Metrics:
    def __init__(self) -> None:
        self.store: dict[str, np.ndarray] = {}

    def add(self, name: str, step: int, values: np.ndarray) -> None:
        self.store[f"{name}/{step:06d}"] = values.copy()

    def mean(self, name: str) -> float:
        last = sorted(key for key in self.store if key.startswith(name))[-1]
        return float(self.store[last].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    args = parser.parse_args()
    torch.set_num_threads(1)
    metrics = Metrics()
    model = nn.Sequential(nn.Linear(48, 96), nn.ReLU(), nn.Linear(96, len(CLASSES)))
    optimizer = torch.optim.Adam(model.parameters())
    start, step = time.time(), 0
    while time.time() - start < args.seconds:
        step += 1
        x = torch.randn(400, 48)
        scores = model(x)
        loss = nn.functional.cross_entropy(scores, x.abs().argmax(1) % len(CLASSES))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for column, name in enumerate(CLASSES):
            metrics.add(name, step, scores.detach().numpy()[:, column])
        time.sleep(0.02)
    print(f"cat {metrics.mean('cat'):.3f}")
    print(f"{step} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
