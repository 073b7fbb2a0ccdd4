"""Large samples that refer to themselves wait for Python's collector, which counts objects."""

import sys
import time

import torch
from torch import nn


class Node:
    """An element of a scene graph; children know their parent."""

    def __init__(self, parent: "Node | None" = None) -> None:
        self.parent = parent
        self.children: list[Node] = []
        if parent is not None:
            parent.children.append(self)


def scene() -> Node:
    root = Node()
    root.pixels = torch.rand(150_000)
    Node(root)
    return root


def main() -> None:
    seconds = float(sys.argv[1])
    torch.set_num_threads(1)
    model = nn.Linear(64, 1)
    opt = torch.optim.Adam(model.parameters())
    t0 = time.time()
    it = 0
    while time.time() - t0 < seconds:
        sample = scene()
        x = sample.pixels[:6400].view(100, 64)
        loss = model(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        it += 1
        time.sleep(0.025)
    print(f"{it} steps in {time.time() - t0:.1f} s")


if __name__ == "__main__":
    main()
