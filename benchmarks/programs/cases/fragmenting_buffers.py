"""Batches of text of all lengths, with a fixed number of small survivors between them."""

import random
import sys
import time

import torch
from torch import nn


def main() -> None:
    random.seed(3)
    torch.set_num_threads(1)
    embedding = nn.EmbeddingBag(5000, 32)
    optimizer = torch.optim.SGD(embedding.parameters(), lr=0.1)
    survivors: list[bytearray] = [bytearray(700) for _ in range(4000)]
    start, steps = time.monotonic(), 0
    while time.monotonic() - start < float(sys.argv[1]):
        pieces = [bytearray(random.randint(600, 60_000)) for _ in range(60)]
        for _ in range(40):
            survivors[random.randrange(len(survivors))] = bytearray(random.randint(600, 900))
        tokens = torch.tensor([len(p) % 5000 for p in pieces]).view(6, 10)
        optimizer.zero_grad()
        embedding(tokens).mean().backward()
        optimizer.step()
        del pieces
        steps += 1
        time.sleep(0.02)
    print(f"{steps} steps in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
