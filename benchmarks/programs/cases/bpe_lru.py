"""Byte pair encoding of texts from a long-tailed vocabulary: the pieces of the last 6,000 words are
remembered, which is full after a fifth of the time."""

import functools
import itertools
import random
import re
import sys
import time

WORDS = re.compile(r"\w+|[^\w\s]")
PAIRS = {a + b: i for i, (a, b) in enumerate((a, b) for a in "etaoins" for b in "etaoins")}


@functools.lru_cache(maxsize=6000)
def pieces(word: str) -> tuple[str, ...]:
    parts = list(word)
    while len(parts) > 1:
        ranks = [PAIRS.get(a + b, 1 << 30) for a, b in itertools.pairwise(parts)]
        if min(ranks) == 1 << 30:
            break
        at = ranks.index(min(ranks))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return tuple(parts)


def main() -> None:
    seconds, random_ = float(sys.argv[1]), random.Random(2)
    start, texts, count = time.time(), 0, 0
    while (done := (time.time() - start) / seconds) < 1:
        fresh = max(2, int(5 * 6000 * done) + 20 - pieces.cache_info().currsize)
        words = [f"{random_.getrandbits(48):x}" for _ in range(min(fresh, 400))]
        text = " ".join([*words, "the", "cat", "sat", ".", "on", "mats", "!"])
        count += sum(len(pieces(word)) for word in WORDS.findall(text))
        texts += 1
        time.sleep(0.03)
    print(f"{texts} texts in {time.time() - start:.1f} s, {count} pieces")


if __name__ == "__main__":
    main()
