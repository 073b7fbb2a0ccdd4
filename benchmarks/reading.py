"""How long does memdiag need for a large text log, beside `grep -c step` on the same file?

    python benchmarks/reading.py [--megabytes N] [--runs N]

The log has a time, a step, a loss, two figures of memory and a speed in each line. Bar: reading and
judging it, with all that Python and the libraries need to start, takes at most 20 times as long as
grep, both from the page cache; the best of some runs counts. Where other programs compete for the
machine, processor time says more: it is told too, and so is what is left without the start.

Then a log four times as long: the memory that memdiag needs for it must not be much more, at most
twice as much. (Up to a million lines with figures it holds all figures, then the extremes.)
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BAR = 20.0
MEMORY_BAR = 2.0


def write_log(path: Path, megabytes: int) -> None:
    rng = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        step = 0
        while file.tell() < megabytes * 1e6:
            file.writelines(_line(step + n, rng) for n in range(10_000))
            step += 10_000


def _line(step: int, rng: random.Random) -> str:
    clock = f"{step // 72000 % 24:02d}:{step // 1200 % 60:02d}:{step // 20 % 60:02d}"
    return (
        f"2026-02-07 {clock} INFO trainer.py:123 step {step} loss {rng.random():.4f} lr 1e-4"
        f" | rss: {5000 + step // 100 + rng.randint(0, 9)} MB"
        f" | vram: {8000 + rng.randint(0, 5)} MB tokens/s 5812\n"
    )


def seconds(command: list[str], runs: int) -> tuple[float, float]:
    """Of the clock and of processors, the best of each."""
    took, cpu = [], []
    for _ in range(runs):
        began, before = time.perf_counter(), _children_cpu_s()
        # To a pipe: grep stops at its first find where nobody reads how many there are.
        subprocess.run(command, stdout=subprocess.PIPE, check=False)
        took.append(time.perf_counter() - began)
        cpu.append(_children_cpu_s() - before)
    return min(took), min(cpu)


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def peak_mb(command: list[str]) -> float:
    """What the largest of our children held so far, this one included."""
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    # An installed package has its byte code; here the first start leaves it for the others.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    analyze = [sys.executable, "-m", "memdiag", "analyze"]
    with tempfile.TemporaryDirectory() as directory:
        short, large = Path(directory) / "short.log", Path(directory) / "large.log"
        short.write_text("".join(_line(step, random.Random(1)) for step in range(100)))
        write_log(large, options.megabytes)
        start, start_cpu = seconds([*analyze, str(short)], options.runs)
        held = [peak_mb([*analyze, str(short)])]
        grep, grep_cpu = seconds(["grep", "-c", "step", str(large)], options.runs)
        whole, whole_cpu = seconds([*analyze, str(large)], options.runs)
        held.append(peak_mb([*analyze, str(large)]))
        write_log(large, 4 * options.megabytes)
        held.append(peak_mb([*analyze, str(large)]))
    print(f"{'':26} clock    times grep's   processor    times grep's")
    for name, clock, cpu in (
        ("grep -c step", grep, grep_cpu),
        ("memdiag analyze", whole, whole_cpu),
        ("  without a short log's", whole - start, whole_cpu - start_cpu),
    ):
        print(f"{name:24} {clock:5.2f} s {clock / grep:10.1f} {cpu:14.2f} s {cpu / grep_cpu:12.1f}")
    print(
        f"memory at the peak: {held[0]:.0f} MB for 100 lines, {held[1]:.0f} MB for"
        f" {options.megabytes} MB of log, {held[2]:.0f} MB for {4 * options.megabytes} MB"
    )
    bars = min(whole / grep, whole_cpu / grep_cpu) <= BAR, held[2] <= MEMORY_BAR * held[1]
    print(f"bars: {BAR:.0f} times grep, {MEMORY_BAR:.0f} times the memory: {bars}")
    return 0 if all(bars) else 1


if __name__ == "__main__":
    raise SystemExit(main())
