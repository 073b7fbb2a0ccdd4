"""Both workers of a loader keep what they have decoded."""

import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Clips(IterableDataset):
    def __init__(self) -> None:
        self.decoded: list[np.ndarray] = []

    def decode(self) -> np.ndarray:
        clip = np.random.default_rng(len(self.decoded)).random(2048)
        self.decoded.append(clip)
        return clip.astype(np.float32)

    def __iter__(self):
        while True:
            yield torch.from_numpy(self.decode()[:128].copy())


def main() -> None:
    torch.set_num_threads(1)
    loader = DataLoader(Clips(), batch_size=4, num_workers=2, prefetch_factor=2)
    model = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters())
    began, step = time.time(), 0
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().square().backward()
        optimizer.step()
        step += 1
        if time.time() - began > float(sys.argv[1]):
            break
        time.sleep(0.025)
    print(f"{step} steps in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
