"""Fills a table that was allocated at the start; its pages come as they are written."""

import sys
import time

import numpy as np


def main(seconds: float) -> None:
    rng = np.random.default_rng(0)
    rows = int(seconds / 0.05 / 3)
    table = np.empty((rows, 12_000))
    start, n = time.time(), 0
    while time.time() - start < seconds:
        due = time.time() + 0.05
        table[n % rows] = rng.normal(size=12_000)
        n += 1
        time.sleep(max(0.0, due - time.time()))
    print(f"mean {table[: min(n, rows)].mean():.4f}")
    print(f"{n} rows in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main(float(sys.argv[1]))
