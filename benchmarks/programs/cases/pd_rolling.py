"""A moving window over a stream of ticks: the frame is cut to its last 50,000 rows."""

import argparse
import time

import numpy as np
import pandas as pd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--window", type=int, default=50_000)
    args = parser.parse_args()
    rng = np.random.default_rng(9)
    ticks = pd.DataFrame({"price": [100.0], "volume": [0.0]})
    per_round = int(args.window / (args.seconds * 0.3 / 0.1))
    start, rounds = time.time(), 0
    while time.time() - start < args.seconds:
        due = time.time() + 0.1
        last = ticks["price"].iloc[-1]
        new = pd.DataFrame(
            {
                "price": last + rng.normal(size=per_round).cumsum(),
                "volume": rng.exponential(size=per_round),
            }
        )
        ticks = pd.concat([ticks, new], ignore_index=True).tail(args.window)
        ticks["price"].rolling(100).mean().max()
        rounds += 1
        time.sleep(max(0.0, due - time.time()))
    print(f"{rounds} rounds in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
