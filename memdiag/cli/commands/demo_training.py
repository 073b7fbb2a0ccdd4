"""The training of `memdiag demo`: it keeps an array of each step, or those of the first steps only.

    memdiag run -- python demo_training.py leak
    memdiag run -- python demo_training.py warmup

A program of its own, in the standard library: memdiag never imports it.
"""

from __future__ import annotations

import sys
import time

import memdiag

STEPS, PAUSE_S = 500, 0.02
ITEM_BYTES = 200_000
# The warm-up fills a cache of so many items.
CACHED = 100


def train(name: str) -> None:
    """Run some seconds of it. name: `leak` or `warmup`."""
    history: list[bytearray] = []
    most = STEPS if name == "leak" else CACHED
    for step in range(STEPS):
        memdiag.step(step)
        batch = bytearray(ITEM_BYTES)
        if len(history) < most:
            history.append(batch)
        if step % 100 == 0:
            print(f"step {step} of {STEPS}", flush=True)
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    train(sys.argv[1])
