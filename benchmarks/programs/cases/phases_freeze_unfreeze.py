"""Fine-tuning: the head alone first, then the whole network with a smaller learning rate."""

import argparse
import time

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, width: int = 700) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(100, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.backbone(x))

    def freeze(self, frozen: bool) -> None:
        for parameter in self.backbone.parameters():
            parameter.requires_grad = not frozen


def run_phase(model: Classifier, lr: float, seconds: float) -> int:
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=lr)
    until, steps = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        x, y = torch.randn(32, 100), torch.randint(0, 10, (32,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        time.sleep(0.02)
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    seconds = parser.parse_args().seconds
    torch.set_num_threads(1)
    model = Classifier()
    model.freeze(True)
    print("phase: head", flush=True)
    steps = run_phase(model, 1e-3, seconds * 0.35)
    model.freeze(False)
    print("phase: all", flush=True)
    steps += run_phase(model, 1e-4, seconds * 0.65)
    print(f"{steps} steps in {seconds:.1f} s")


if __name__ == "__main__":
    main()
