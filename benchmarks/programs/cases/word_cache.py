"""A tokenizer that remembers how it split each word. Words follow Zipf's law."""

import sys
import time

import numpy as np
import torch
from torch import nn

VOCABULARY = 5_000


class Tokenizer:
    def __init__(self) -> None:
        self.cache: dict[str, list[str]] = {}

    def split(self, word: str) -> list[str]:
        if word not in self.cache:
            self.cache[word] = [word[i : i + 3] + "##" for i in range(0, len(word), 2)]
        return self.cache[word]

    def encode(self, text: str) -> list[int]:
        return [len(p) * 17 % 997 + ord(p[0]) % 3 for w in text.split() for p in self.split(w)]


def sentences(rng: np.random.Generator, words: int) -> str:
    ranks = rng.zipf(1.3, size=words) % VOCABULARY
    return " ".join(f"w{rank:07d}" for rank in ranks)


def main() -> None:
    torch.set_num_threads(1)
    rng, tokenizer = np.random.default_rng(5), Tokenizer()
    model = nn.Sequential(nn.EmbeddingBag(1000, 32), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start, steps = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        ids = tokenizer.encode(sentences(rng, 300))[:1024]
        loss = model(torch.tensor([ids])).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        time.sleep(0.02)
    print(f"{steps} steps in {time.time() - start:.1f} s, {len(tokenizer.cache)} words")


if __name__ == "__main__":
    main()
