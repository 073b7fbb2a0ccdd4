"""Keeps every cleaned frame in a list, to put them together at the end of the day."""

import logging
import sys
import time

import numpy as np
import pandas as pd

logging.basicConfig(level=logging.INFO)


class Pipeline:
    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.frames: list[pd.DataFrame] = []

    def extract(self) -> pd.DataFrame:
        values = self.rng.normal(size=(1500, 6))
        values[self.rng.random(values.shape) < 0.05] = np.nan
        return pd.DataFrame(values, columns=list("abcdef"))

    def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame.fillna(frame.mean())

    def load(self, frame: pd.DataFrame) -> None:
        self.frames.append(frame)


def main() -> None:
    pipeline, runs = Pipeline(), 0
    start = time.monotonic()
    while time.monotonic() - start < float(sys.argv[1]):
        due = time.monotonic() + 0.1
        pipeline.load(pipeline.transform(pipeline.extract()))
        runs += 1
        if runs % 100 == 0:
            logging.info("%d frames", len(pipeline.frames))
        time.sleep(max(0.0, due - time.monotonic()))
    print(f"{runs} runs in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    main()
