"""Workers read a list of Python objects: each look at one copies the page that it lies in."""

import argparse
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Annotations(Dataset):
    """Boxes and captions, as a JSON file would hold them."""

    def __init__(self, images: int) -> None:
        rng = random.Random(0)
        self.items = [
            {"id": i, "caption": f"image {i} of {images}", "box": [rng.random() for _ in range(4)]}
            for i in range(images)
        ]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> torch.Tensor:
        item = self.items[index]
        return torch.tensor([*item["box"], len(item["caption"])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--images", type=int, default=150_000)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    loader = DataLoader(
        Annotations(args.images),
        batch_size=256,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=True,
    )
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    start, steps = time.time(), 0
    while time.time() - start < args.seconds:
        for batch in loader:
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            time.sleep(0.015)
            if time.time() - start > args.seconds:
                break
    print(f"{steps} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
