"""k-means by small batches: centers move, nothing is kept."""

import argparse
import logging
import time

import numpy as np

logger = logging.getLogger(__name__)


def assign(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    distances = ((points[:, None, :] - centers[None]) ** 2).sum(-1)
    return distances.argmin(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("-k", type=int, default=30)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(options.k, 10))
    counts = np.ones(options.k)
    begun, batches = time.perf_counter(), 0
    while time.perf_counter() - begun < options.seconds:
        points = rng.normal(size=(rng.integers(500, 4000), 10))
        nearest = assign(points, centers)
        for k in range(options.k):
            mine = points[nearest == k]
            if len(mine):
                counts[k] += len(mine)
                centers[k] += (mine - centers[k]).sum(0) / counts[k]
        batches += 1
        if batches % 200 == 0:
            logger.info("batch %d, spread %.3f", batches, centers.std())
        time.sleep(0.03)
    print(f"{batches} batches in {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main()
