"""Plots the weights now and then, and never closes a figure."""

import logging
import sys
import time

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import torch
from torch import nn

plt.rcParams["figure.max_open_warning"] = 0
logging.getLogger("matplotlib").setLevel(logging.WARNING)


def plot(weights: torch.Tensor) -> None:
    plt.figure(figsize=(4, 3))
    plt.plot(weights.flatten().tolist())
    plt.title("weights")


def main() -> None:
    torch.set_num_threads(1)
    model = nn.Linear(200, 20)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    start, steps = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        loss = model(torch.randn(10, 200)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 10 == 0:
            plot(model.weight.detach())
        time.sleep(0.03)
    print(f"{steps} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
