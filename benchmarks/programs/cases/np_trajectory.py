"""Gradient descent in numpy that writes down where it has been."""

import argparse
import time

import numpy as np


class Descent:
    def __init__(self, dimension: int, rate: float) -> None:
        rng = np.random.default_rng(0)
        self.matrix = rng.normal(size=(200, dimension)) / np.sqrt(dimension)
        self.goal = rng.normal(size=200)
        self.where = np.zeros(dimension)
        self.rate = rate
        self.path: list[np.ndarray] = []

    def step(self) -> float:
        error = self.matrix @ self.where - self.goal
        self.where = self.where - self.rate * self.matrix.T @ error
        self.path.append(self.where)
        return float(error @ error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--dimension", type=int, default=4000)
    args = parser.parse_args()
    descent = Descent(args.dimension, rate=0.1)
    start, count = time.time(), 0
    while time.time() - start < args.seconds:
        due = time.time() + 0.05
        descent.step()
        count += 1
        time.sleep(max(0.0, due - time.time()))
    print(f"{count} iterations in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
