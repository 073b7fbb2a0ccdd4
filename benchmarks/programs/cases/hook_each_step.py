"""Measures activations by a hook that is registered anew in each step."""

import sys
import time

import torch
from torch import nn


class ActivationStats:
    """The first activation of a layer, weighted by what came in."""

    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer
        self.values: dict[str, float] = {}

    def watch(self, weights: torch.Tensor) -> None:
        def hook(module: nn.Module, inputs: tuple, output: torch.Tensor) -> None:
            self.values["first"] = float(output[0, 0] * weights[0, 0])

        self.layer.register_forward_hook(hook)


class Trainer:
    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.stats = ActivationStats(self.model[0])

    def fit(self, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        step = 0
        while time.monotonic() < deadline:
            next_step = time.monotonic() + 0.1
            x = torch.rand(256, 128)
            self.stats.watch(x)
            self.optimizer.zero_grad()
            self.model(x).mean().backward()
            self.optimizer.step()
            step += 1
            time.sleep(max(0.0, next_step - time.monotonic()))
        return step


if __name__ == "__main__":
    torch.set_num_threads(1)
    t0 = time.monotonic()
    n = Trainer().fit(float(sys.argv[1]))
    print(f"{n} steps in {time.monotonic() - t0:.1f} s")
