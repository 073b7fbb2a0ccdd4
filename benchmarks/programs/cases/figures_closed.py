"""Plots the loss every second into a file in memory, and closes the figure."""

import io
import sys
import time
from collections import deque

import matplotlib as mpl
import torch

mpl.use("Agg")
from matplotlib import pyplot as plt


class Plotter:
    def __init__(self) -> None:
        self.losses: deque[float] = deque(maxlen=500)
        self.last = time.time()

    def __call__(self, loss: float) -> None:
        self.losses.append(loss)
        if time.time() - self.last > 1:
            figure, axes = plt.subplots(figsize=(3, 2))
            axes.plot(self.losses)
            figure.savefig(io.BytesIO(), format="png", dpi=60)
            plt.close(figure)
            self.last = time.time()


torch.set_num_threads(1)
plotter = Plotter()
layer = torch.nn.Linear(64, 64)
optimizer = torch.optim.Adagrad(layer.parameters(), lr=1e-3)
start, steps = time.time(), 0
while time.time() - start < float(sys.argv[1]):
    x = torch.randn(32, 64)
    loss = torch.nn.functional.l1_loss(layer(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    plotter(loss.item())
    steps += 1
    time.sleep(0.03)
print(f"{steps} steps in {time.time() - start:.1f} s")
