"""Fits that fail are listed for the summary: each exception holds the frames with their arrays."""

import sys
import time
from collections import Counter

import numpy as np


class Diverged(Exception):
    pass


def solve(design: np.ndarray, target: np.ndarray) -> np.ndarray:
    gram = design.T @ design
    coefficients = np.linalg.solve(gram + 1e-6 * np.eye(len(gram)), design.T @ target)
    residual = target - design @ coefficients
    if residual.std() > 0.95:
        raise Diverged(f"residual {residual.std():.2f}")
    return coefficients


def main(seconds: float) -> None:
    rng = np.random.default_rng(11)
    failed: list[Exception] = []
    solved = 0
    start, n = time.time(), 0
    while time.time() - start < seconds:
        due = time.time() + 0.07
        design = rng.normal(size=(400, 12))
        noise = rng.choice([0.3, 1.2])
        try:
            solve(design, design[:, 0] + noise * rng.normal(size=400))
            solved += 1
        except Diverged as error:
            failed.append(error)
        n += 1
        time.sleep(max(0.0, due - time.time()))
    print(f"{solved} solved; {Counter(type(error).__name__ for error in failed)}")
    print(f"{n} fits in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main(float(sys.argv[1]))
