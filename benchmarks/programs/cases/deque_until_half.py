"""A window over the last batches, full when half of the time is over."""

import sys
import time
from collections import deque

import torch
from torch import nn

RATE = 6  # steps per second, also of a machine that does other work


def main(seconds: float) -> None:
    torch.set_num_threads(1)
    window: deque = deque(maxlen=int(seconds * RATE / 2))
    net = nn.Linear(128, 128)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    start = time.monotonic()
    steps = 0
    while (now := time.monotonic()) - start < seconds:
        batch = torch.randn(256, 128)
        window.append(batch)
        mean = window[0].mean(0)
        loss = (net(batch) - mean).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        time.sleep(max(0.0, 1 / RATE - (time.monotonic() - now)))
    print(f"{steps} steps in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main(float(sys.argv[1]))
