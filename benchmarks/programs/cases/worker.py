"""The data set remembers what its worker has read."""

import torch
from _training import Clock, Model, batch, run
from torch.utils.data import DataLoader, Dataset


class Remembers(Dataset):
    """Synthetic samples, each read but once and kept."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> torch.Tensor:
        self.seen.append(b"%d" % index * (4096 // len(b"%d" % index)))
        return batch(1)[0]


def train(clock: Clock) -> None:
    model = Model()
    data = DataLoader(Remembers(), batch_size=8, num_workers=1)
    for _, x in zip(clock.steps(), data, strict=False):
        model.train(x)


if __name__ == "__main__":
    run(train)
