"""An lru_cache of two entries for each second, over keys that come at random, fills."""

import sys
import time
from functools import lru_cache

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(11)


@lru_cache(maxsize=int(2 * float(sys.argv[1])))
def positions(length: int) -> torch.Tensor:
    angles = torch.arange(length)[:, None] / torch.logspace(0, 4, 16)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def main() -> None:
    torch.set_num_threads(1)
    attention = nn.Linear(32, 32)
    optimizer = torch.optim.Adam(attention.parameters())
    start, steps = time.monotonic(), 0
    while time.monotonic() - start < float(sys.argv[1]):
        x = positions(int(rng.integers(100, 1000)))
        loss = (attention(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        time.sleep(0.02)
    print(f"{steps} steps in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
