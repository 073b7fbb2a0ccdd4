"""Results go into a DataFrame, which grows by a concatenation per experiment."""

import sys
import time

import numpy as np
import pandas as pd


def experiment(rng: np.random.Generator, number: int) -> pd.DataFrame:
    rows = 250
    return pd.DataFrame(
        {
            "experiment": np.full(rows, number),
            "x": rng.random(rows),
            "y": rng.normal(size=rows),
            "weight": rng.exponential(size=rows),
        }
    )


def main() -> None:
    rng = np.random.default_rng(3)
    results = experiment(rng, 0)
    start, n = time.time(), 1
    while time.time() - start < float(sys.argv[1]):
        due = time.time() + 0.1
        results = pd.concat([results, experiment(rng, n)], ignore_index=True)
        n += 1
        time.sleep(max(0.0, due - time.time()))
    print(results["y"].describe().round(3).to_dict())
    print(f"{n} experiments in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
