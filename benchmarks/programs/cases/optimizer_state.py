"""A larger model: gradients and Adam's state appear with the first step."""

import sys
import time

import torch
from torch import nn


def main() -> None:
    torch.set_num_threads(1)
    limit = float(sys.argv[1])
    model = nn.Sequential(nn.Embedding(60_000, 64), nn.Flatten(), nn.Linear(64 * 8, 32))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    time.sleep(min(3.0, limit / 10))  # data are being prepared
    begin = time.time()
    steps = 0
    while time.time() - begin < limit:
        tokens = torch.randint(0, 60_000, (16, 8))
        loss = model(tokens).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    print(f"{steps} steps in {time.time() - begin:.1f} s")


if __name__ == "__main__":
    main()
