"""How long `memdiag analyze` takes, beside what only reading the same files takes.

    python benchmarks/speed.py [--seed S] [--rows N] [--files N]

Whole processes, the least of three each, taken in turn: `memdiag analyze` on a CSV of a million
rows and ten columns beside `pandas.read_csv` in a process that has imported pandas already (the
bar), and beside all of a process that imports pandas and reads the file (like beside like); the
growth of its time and its peak memory from a tenth of a million to ten million rows of two columns;
a thousand recordings of a thousand rows in one call beside only reading them with polars. Fails
where a bar is missed.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from _rows import Row, missed, table

TRIES = 3
MACOS = sys.platform == "darwin"
# (What polars asks of its allocator it leaves in the environment: a shell's has none of it.)
WHOLE = """
import os, resource, subprocess, sys, time
os.environ.pop("_RJEM_MALLOC_CONF", None)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its byte code
command = [sys.executable, "-m", "memdiag", "analyze", *sys.argv[1:]]
began_s = time.perf_counter()
subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(time.perf_counter() - began_s, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
PANDAS = """
import sys, time
import pandas
began_s = time.perf_counter()
pandas.read_csv(sys.argv[1])
print(time.perf_counter() - began_s)
"""
POLARS = """
import sys, time
from pathlib import Path
import polars
files = sorted(Path(sys.argv[1]).glob("*.csv"))
began_s = time.perf_counter()
for file in files:
    polars.read_csv(file)
print(time.perf_counter() - began_s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Wall time of a whole process, and its peak memory."""

    wall_s: float
    peak_bytes: int


def analyze(*files: Path) -> Taken:
    """`memdiag analyze` on the files; its verdict and exit code are not looked at.

    Started from a small process: the peak of one that was forked counts its parent's.
    """
    command = [sys.executable, "-c", WHOLE, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall_s, peak = done.stdout.split()
    return Taken(wall_s=float(wall_s), peak_bytes=int(peak) * (1 if MACOS else 1024))


def told(program: str, argument: Path) -> float:
    """The seconds that a small program prints."""
    return timed(program, argument)[0]


def timed(program: str, argument: Path) -> tuple[float, float]:
    """The seconds that a small program prints, and those of the whole process."""
    command = [sys.executable, "-c", program, str(argument)]
    began_s = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout), time.perf_counter() - began_s


def write(path: Path, rows: int, columns: int, random: np.random.Generator) -> None:
    """A step and noisy levels in MB with three decimals."""
    levels = {
        f"m{i}_mb": np.round(5000 + 5 * random.standard_normal(rows), 3) for i in range(columns - 1)
    }
    pl.DataFrame({"step": np.arange(rows), **levels}).write_csv(path)


def one_large(folder: Path, rows: int, random: np.random.Generator) -> list[Row]:
    try:
        import pandas
    except ImportError:
        return [_row("analyze over pandas.read_csv", "pandas is not installed", "<= 1.0", None)]
    path = folder / "large.csv"
    write(path, rows, 10, random)
    taken = [(analyze(path).wall_s, *timed(PANDAS, path)) for _ in range(TRIES)]
    ours_s, call_s, process_s = (min(column) for column in zip(*taken, strict=True))
    path.unlink()
    figure = f"analyze, {rows:,} x 10, over pandas.read_csv"
    beside = f"{ours_s:.2f} s / {process_s:.2f} s = {ours_s / process_s:.2f}"
    value = f"{ours_s:.2f} s / {call_s:.2f} s = {ours_s / call_s:.2f} (pandas {pandas.__version__})"
    return [
        _row(figure, value, "<= 1.0", ours_s <= call_s),
        _row(f"{figure} in a process of its own", beside, "-", None),
    ]


def growth(folder: Path, rows: int, random: np.random.Generator) -> list[Row]:
    """Time and memory at a tenth, all and ten times the rows, in two columns."""
    taken, numbers = [], []
    for n in (rows // 10, rows, 10 * rows):
        path = folder / f"{n}.csv"
        write(path, n, 2, random)
        taken.append(min((analyze(path) for _ in range(TRIES)), key=lambda t: t.wall_s))
        numbers.append(n * 2 * 8)
        path.unlink()
    times = " ".join(f"{t.wall_s:.2f}" for t in taken)
    power = math.log(taken[-1].wall_s / taken[0].wall_s) / math.log(100)
    peak = taken[-1].peak_bytes / numbers[-1]
    shown = f"{times} s: rows to the power {power:.2f}"
    return [
        _row(f"cost at {rows // 10:,}, {rows:,}, {10 * rows:,} rows", shown, "<= 1", power <= 1),
        _row(f"peak memory over the numbers, {10 * rows:,} x 2", f"{peak:.1f}", "<= 4", peak <= 4),
    ]


def many_small(folder: Path, files: int, random: np.random.Generator) -> list[Row]:
    paths = [folder / f"{i:04}.csv" for i in range(files)]
    for path in paths:
        write(path, 1000, 3, random)
    pairs = [(analyze(*paths).wall_s, told(POLARS, folder)) for _ in range(TRIES)]
    ours_s, theirs_s = (min(column) for column in zip(*pairs, strict=True))
    value = f"{ours_s:.1f} s / {theirs_s:.2f} s = {ours_s / theirs_s:.0f}"
    good = ours_s <= 40 * theirs_s
    return [_row(f"{files:,} recordings of 1,000 rows, over reading them", value, "<= 40", good)]


def _row(figure: str, value: str, bar: str, good: bool | None) -> Row:
    return Row(on="speed", figure=figure, value=value, bar=bar, good=good)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=1000)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    rows = []
    for part, size in (
        (one_large, options.rows),
        (growth, options.rows),
        (many_small, options.files),
    ):
        with tempfile.TemporaryDirectory() as folder:
            rows += part(Path(folder), size, random)
    print(table(rows))
    return 1 if missed(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
