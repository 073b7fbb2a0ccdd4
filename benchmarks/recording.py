"""How large a long recording becomes, what it keeps, and what a row costs.

    python benchmarks/recording.py [--hours 24] [--hertz 10] [--processes 10]

Simulates a training: noise, a slow leak, two phases that alternate every second and an evaluation
of 20 s every ten minutes, in every process; prints size, CPU time per row, and how many of the
evaluations' beginnings are still there. A day takes two to three minutes.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from memdiag.recording.native.atomic_file import RecordingFiles
from memdiag.recording.native.writer import Writer
from memdiag.values.measurements import Sample

_EVALUATION_EVERY_S, _EVALUATION_S = 600, 20


def _samples(at_s: float, tick: int, processes: int, noise: list[float]) -> Iterator[Sample]:
    evaluating = at_s % _EVALUATION_EVERY_S < _EVALUATION_S
    phase = "eval" if evaluating else ("forward", "backward")[int(at_s) % 2]
    total = 0
    for number in range(processes):
        moved = noise[(tick * processes + number) % len(noise)]
        rss = int(5e9 + 1e9 * number + 2e6 * moved + 3e8 * evaluating + at_s / 3600 * 1e7)
        total += rss
        readings: dict[str, int | float] = {"rss_bytes": rss, "vram_bytes": 20 * 10**9 + number}
        if tick % 50 == 0:
            readings |= {"uss_bytes": rss - 10**8, "pss_bytes": rss - 10**7}
        if tick % 10 == 0:
            readings["tensors"] = 6529
        label = f"rank {number}"
        step = int(at_s / 2)
        yield Sample(
            at_s=at_s, pid=number, process=label, readings=readings, step=step, phase=phase
        )
    tree: dict[str, int | float] = {"rss_bytes": total, "processes": processes}
    yield Sample(at_s=at_s, pid=0, process="tree", readings=tree, step=int(at_s / 2), phase=phase)


def main() -> None:
    """Runs the simulation and prints its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--hertz", type=int, default=10)
    parser.add_argument("--processes", type=int, default=10)
    options = parser.parse_args()
    rng = random.Random(1)
    noise = [rng.gauss(0, 1) for _ in range(100_003)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "day.csv"
        writer = Writer(RecordingFiles(path, force=False), about={}, interval_s=1 / options.hertz)
        rows = largest = 0
        began_s = time.process_time()
        for tick in range(int(options.hours * 3600 * options.hertz)):
            samples = list(_samples(tick / options.hertz, tick, options.processes, noise))
            rows += len(samples)
            writer.add(samples)
            if tick % options.hertz == 0:
                writer.flush()
                largest = max(largest, path.stat().st_size)
        writer.close()
        cpu_s = time.process_time() - began_s
        kept = pl.read_csv(path).filter(pl.col("process") == "rank 0")
        begins = (kept["phase"] == "eval") & (kept["phase"].shift() != "eval")
        wanted = int(options.hours * 3600 / _EVALUATION_EVERY_S) - 1  # the first begins the run
        print(f"{rows} rows, {1e6 * cpu_s / rows:.1f} us of CPU per row, simulation included")
        print(f"{path.stat().st_size / 1e6:.1f} MB at the end, {largest / 1e6:.1f} MB at most")
        print(f"{len(kept)} rows of rank 0; {begins.sum()} of {wanted} evaluations begin there")


if __name__ == "__main__":
    main()
