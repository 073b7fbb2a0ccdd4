"""Two workers that cut and flip images, and keep nothing."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Crops(Dataset):
    def __init__(self) -> None:
        self.images = torch.rand(200, 3, 48, 48)

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = self.images[index % 200]
        top, left = torch.randint(0, 16, (2,)).tolist()
        crop = image[:, top : top + 32, left : left + 32]
        return crop.flip(-1) if index % 2 else crop, index % 10


def main() -> None:
    torch.set_num_threads(1)
    deadline = time.time() + float(sys.argv[1])
    loader = DataLoader(Crops(), batch_size=16, num_workers=2, shuffle=True)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(1800, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    begin, steps = time.time(), 0
    for image, label in loader:
        loss = nn.functional.cross_entropy(net(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if time.time() > deadline:
            break
        time.sleep(0.02)
    print(f"{steps} steps in {time.time() - begin:.1f} s")


if __name__ == "__main__":
    main()
