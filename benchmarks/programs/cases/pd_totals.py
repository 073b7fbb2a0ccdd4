"""Totals per customer over chunks of orders: customers are known after a while."""

import sys
import time

import numpy as np
import pandas as pd


def orders(rng: np.random.Generator, customers: int, rows: int = 2000) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "customer": [f"C{number:07d}" for number in rng.integers(0, customers, rows)],
            "amount": rng.gamma(2.0, 20.0, rows).round(2),
            "items": rng.poisson(3, rows),
        }
    )


def main(seconds: float) -> None:
    rng = np.random.default_rng(0)
    totals = None
    start, n = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        due = time.monotonic() + 0.09
        chunk = orders(rng, 20_000).groupby("customer")[["amount", "items"]].sum()
        totals = chunk if totals is None else totals.add(chunk, fill_value=0)
        n += 1
        time.sleep(max(0.0, due - time.monotonic()))
    print(totals.nlargest(3, "amount"))
    print(f"{n} chunks in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main(float(sys.argv[1]))
