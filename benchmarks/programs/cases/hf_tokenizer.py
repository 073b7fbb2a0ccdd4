"""A fast tokenizer with its cache of words, which has a limit, in front of a training."""

import random
import sys
import time

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn


def words(rng: random.Random, count: int) -> list[str]:
    letters = "etaoinshrdlucm"
    return ["".join(rng.choices(letters, k=rng.randint(3, 9))) for _ in range(count)]


def build() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=800, special_tokens=["?"], show_progress=False)
    tokenizer.train_from_iterator([" ".join(words(random.Random(0), 3000))], trainer)
    return tokenizer


def main() -> None:
    torch.set_num_threads(1)
    tokenizer, rng = build(), random.Random(1)
    model = nn.Sequential(nn.EmbeddingBag(800, 32), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start, steps = time.time(), 0
    while time.time() - start < float(sys.argv[1]):
        ids = tokenizer.encode(" ".join(words(rng, 80))).ids[:128]
        loss = model(torch.tensor([ids])).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        time.sleep(0.02)
    print(f"{steps} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
