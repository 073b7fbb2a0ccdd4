"""Two workers that read ahead."""

from _training import BATCH, Clock, Model, batch, run
from torch.utils.data import DataLoader, TensorDataset


def train(clock: Clock) -> None:
    model = Model()
    data = DataLoader(TensorDataset(batch(100_000)), batch_size=BATCH, num_workers=2)
    for _, (x,) in zip(clock.steps(), data, strict=False):
        model.train(x)


if __name__ == "__main__":
    run(train)
