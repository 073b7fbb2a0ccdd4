"""An unbounded lru_cache on a method: each batch has a key of its own."""

import functools
import sys
import time

import numpy as np
import torch
from torch import nn


class Features:
    def __init__(self, size: int) -> None:
        self.size = size

    @functools.lru_cache(maxsize=None)  # noqa: B019, UP033
    def spectrum(self, seed: int) -> np.ndarray:
        signal = np.random.default_rng(seed).normal(size=self.size)
        return np.abs(np.fft.rfft(signal)).astype(np.float32)


class Experiment:
    def __init__(self) -> None:
        self.features = Features(8190)
        self.model = nn.Linear(4096, 4)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-7)

    def step(self, index: int) -> float:
        x = torch.from_numpy(self.features.spectrum(index))
        loss = self.model(x).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main() -> None:
    torch.set_num_threads(1)
    experiment = Experiment()
    start, index = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        experiment.step(index)
        index += 1
        time.sleep(0.025)
    print(f"{index} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
