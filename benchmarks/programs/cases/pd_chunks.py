"""Reads a table by chunks and adds up groups; the groups are always the same."""

import io
import sys
import time

import numpy as np
import pandas as pd


def table(rows: int = 4000) -> str:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"shop": rng.integers(0, 40, rows), "sales": rng.gamma(2, 10, rows)})
    return frame.to_csv(index=False)


text = table()
totals = pd.Series(0.0, index=range(40))
begin, chunks = time.time(), 0
while time.time() - begin < float(sys.argv[1]):
    for chunk in pd.read_csv(io.StringIO(text), chunksize=1000):
        totals = totals.add(chunk.groupby("shop")["sales"].sum(), fill_value=0)
        chunks += 1
        time.sleep(0.04)
print(totals.round().head(3).to_dict())
print(f"{chunks} chunks in {time.time() - begin:.1f} s")
