"""A pool simulates, and the parent keeps every path."""

import multiprocessing as mp
import sys
import time

import numpy as np


def simulate(seed: int) -> np.ndarray:
    time.sleep(0.05)
    return np.random.default_rng(seed).normal(size=6000).cumsum()


def numbers(until: float):
    n = 0
    while time.time() < until:
        yield n
        n += 1
        time.sleep(0.05)


def main() -> None:
    start = time.time()
    paths = []
    with mp.get_context("fork").Pool(2) as pool:
        for path in pool.imap(simulate, numbers(start + float(sys.argv[1]))):
            paths.append(path)
    print(f"{len(paths)} paths in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
