"""Recordings as a fleet writes them: 1,000 samples of six series, each with a known truth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

SAMPLES, SERIES = 1000, 6
# Of a hundred recordings; a platform's runs are mostly healthy.
KINDS = {"flat": 35, "warmup": 40, "steps": 10, "leak": 10, "short": 5}
_DISTINCT = 200
_NUMBER = b"0123456789"


def write(folder: Path, count: int, *, kind: str = "parquet", seed: int = 1) -> list[Path]:
    """Write `count` recordings of `SAMPLES` samples. Beyond 200 they are copies, except for their
    number, which is in the file, so that each has a content of its own.

    A copy is read and judged like any other file; making each one would take most of the time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    names = _drawn(rng)
    tables = [next(names) for _ in range(min(count, _DISTINCT))]
    contents = [_content(_table(rng, name), folder / "next", kind) for name in tables]
    paths = []
    for number in range(count):
        name = tables[number % len(tables)]
        path = folder / f"{number // 1000:03}" / f"{number:06}-{name}.{kind}"
        if number % 1000 == 0:
            path.parent.mkdir(exist_ok=True)
        path.write_bytes(contents[number % len(contents)].replace(_NUMBER, b"%010d" % number))
        paths.append(path)
    return paths


def _drawn(rng: np.random.Generator) -> Iterator[str]:
    names = [name for name, share in KINDS.items() for _ in range(share)]
    while True:
        yield from rng.permutation(names).tolist()


def _content(table: pl.DataFrame, path: Path, kind: str) -> bytes:
    if kind == "csv":
        path.write_bytes(b"# number %s\n" % _NUMBER + table.write_csv().encode())
    else:
        table.write_parquet(path, metadata={"number": _NUMBER.decode()})
    content = path.read_bytes()
    path.unlink()
    return content


def _table(rng: np.random.Generator, kind: str) -> pl.DataFrame:
    """The columns of a monitor: four in bytes, a number of tensors and the driver's value."""
    n = 120 if kind == "short" else SAMPLES
    step = np.arange(n)
    noise = rng.normal(0, 1.5e6, (4, n))
    warm: Any = 4e8 * (1 - np.exp(-step / rng.uniform(10, 60))) * (kind != "flat")
    grown: Any = 0.0
    if kind == "leak":
        grown = rng.uniform(5e4, 2e6) * np.clip(step - rng.integers(0, 200), 0, None)
    elif kind == "steps":
        grown = 5e7 * np.floor(np.clip(step, 0, 300) / 60)
    elif kind == "short":
        grown = 3e6 * step
    rss = 2e9 + warm + grown + noise[0]
    allocated = 6e9 + noise[1] + (step % 50 == 49) * 3e8
    reserved = 7e9 + 2e6 * np.floor(np.clip(step, 0, rng.integers(20, 80)) / 4)
    return pl.DataFrame(
        {
            "step": step,
            "time_s": step * 0.5,
            "rss_bytes": rss.astype(np.int64),
            "uss_bytes": (rss - 2e8 + 0.1 * noise[3]).astype(np.int64),
            "vram_bytes": (reserved + 5e8).astype(np.int64),
            "cuda_allocated_bytes": allocated.astype(np.int64),
            "cuda_reserved_bytes": reserved.astype(np.int64),
            "tensors": (1000 + rng.integers(0, 4, n)).astype(np.int64),
        }
    )
