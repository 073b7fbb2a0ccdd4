"""Passes batches to a viewer through shared mappings, none of which is ever closed."""

import mmap
import sys
import time

import torch
from torch import nn


class Viewer:
    """Would show them, if there were a window."""

    def __init__(self) -> None:
        self.frames: list[mmap.mmap] = []

    def show(self, image: torch.Tensor) -> None:
        raw = image.numpy().tobytes()
        frame = mmap.mmap(-1, len(raw))
        frame.write(raw)
        self.frames.append(frame)


def main() -> None:
    torch.set_num_threads(1)
    viewer = Viewer()
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    start, step = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        x = torch.rand(128, 64)
        out = model(x)
        optimizer.zero_grad()
        (out - x).abs().mean().backward()
        optimizer.step()
        viewer.show(out.detach())
        step += 1
        time.sleep(0.025)
    print(f"{step} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
