"""Epochs over a file of samples in shuffled order, each through a new map of the file."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROWS, WIDTH, BATCH = 12_000, 512, 150


def epoch(path: Path, rng: np.random.Generator):
    data = np.memmap(path, dtype=np.float32, mode="r", shape=(ROWS, WIDTH))
    order = rng.permutation(ROWS)
    for first in range(0, ROWS, BATCH):
        yield np.array(data[np.sort(order[first : first + BATCH])])


def main() -> None:
    seconds = float(sys.argv[1])
    rng = np.random.default_rng(0)
    path = Path(tempfile.mkdtemp()) / "samples.f32"
    out = np.memmap(path, dtype=np.float32, mode="w+", shape=(ROWS, WIDTH))
    for first in range(0, ROWS, 1000):
        out[first : first + 1000] = rng.normal(size=(1000, WIDTH))
    out.flush()
    del out
    weights = np.zeros(WIDTH, np.float32)
    start, n, epochs = time.time(), 0, 0
    while time.time() - start < seconds:
        for batch in epoch(path, rng):
            prediction = batch @ weights
            weights -= 1e-3 * batch.T @ (prediction - batch[:, 0]) / BATCH
            n += 1
            time.sleep(0.05)
            if time.time() - start > seconds:
                break
        epochs += 1
    path.unlink()
    path.parent.rmdir()
    print(f"{epochs} epochs, first weight {weights[0]:.3f}")
    print(f"{n} batches in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
