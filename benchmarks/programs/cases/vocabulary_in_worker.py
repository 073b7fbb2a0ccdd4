"""The loader's worker counts words as it reads, and the words never repeat."""

import random
import sys
import time
from itertools import pairwise

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Sentences(IterableDataset):
    """Tokens of a stream of logs, full of request ids."""

    def __init__(self) -> None:
        self.contexts: dict[str, list[str]] = {}

    def __iter__(self):
        rng = random.Random(0)
        while True:
            words = [f"req-{rng.getrandbits(48):012x}" for _ in range(8)]
            for before, after in pairwise(words):
                self.contexts.setdefault(before, []).append(after)
            yield torch.tensor([hash(word) % 1000 for word in words])


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, 32)
        self.rnn = nn.GRU(32, 32, batch_first=True)
        self.head = nn.Linear(32, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(self.embed(tokens))[0])


def main() -> None:
    torch.set_num_threads(1)
    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    start, step = time.time(), 0
    for tokens in DataLoader(Sentences(), batch_size=16, num_workers=1, prefetch_factor=2):
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten() % 2)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        time.sleep(0.045)
        if time.time() - start > float(sys.argv[1]):
            break
    print(f"{step} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
