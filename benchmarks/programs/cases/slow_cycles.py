"""Predictions that refer to themselves; few objects, so the collector comes once in many steps."""

import sys
import time

import torch
from torch import nn


class Prediction:
    """Knows the function that draws it."""

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values
        self.draw = self.draw_bars

    def draw_bars(self) -> str:
        return "#" * int(self.values[0].abs() * 10)


def main() -> None:
    torch.set_num_threads(1)
    model = nn.Linear(64, 50_000)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    began, step = time.time(), 0
    while time.time() - began < float(sys.argv[1]):
        out = model(torch.randn(2, 64))
        optimizer.zero_grad()
        out.square().mean().backward()
        optimizer.step()
        prediction = Prediction(out.detach()[0].clone())
        step += 1
        if step % 100 == 0:
            print(prediction.draw())
        time.sleep(0.12)
    print(f"{step} steps in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
