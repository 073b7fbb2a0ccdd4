"""Convolutions, and nothing is kept."""

import torch
from _training import Clock, run
from torch import nn


def train(clock: Clock) -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4))
    net(torch.zeros(1, 3, 16, 16))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for _ in clock.steps():
        optimizer.zero_grad()
        net(torch.randn(8, 3, 16, 16)).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    run(train)
