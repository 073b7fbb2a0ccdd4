"""How long does memdiag need for a large text log, beside `grep -c step` on the same file?

    python benchmarks/reading.py [--megabytes N] [--runs N]

The log has a time, a step, a loss, two figures of memory and a speed in each line. Bar: reading and
judging it takes at most 20 times as long as grep, both from the page cache; the best of some runs
counts. What Python and the libraries need to start, which a log of 100 lines needs as well, is told
apart and not counted. Where other programs compete for the machine, processor time says more: it
is told too, though memdiag uses two cores and grep one.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BAR = 20.0


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    analyze = [sys.executable, "-m", "memdiag", "analyze"]
    with tempfile.TemporaryDirectory() as directory:
        large, small = Path(directory) / "large.log", Path(directory) / "small.log"
        write_log(large, options.megabytes)
        small.write_text("".join(_line(step, random.Random(1)) for step in range(100)))
        grep, grep_cpu = seconds(["grep", "-c", "step", str(large)], options.runs)
        whole, whole_cpu = seconds([*analyze, str(large)], options.runs)
        start, start_cpu = seconds([*analyze, str(small)], options.runs)
    peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    print(f"grep -c step     {grep:6.2f} s")
    print(
        f"memdiag analyze  {whole:6.2f} s, {whole / grep:.0f} times; {start:.2f} s of a short log"
    )
    times = (whole - start) / grep
    print(f"the difference   {whole - start:6.2f} s, {times:.0f} times (bar {BAR:.0f})")
    print(f"processor time   {whole_cpu - start_cpu:6.2f} s over {grep_cpu:.2f} s of grep's")
    print(f"at its peak memdiag held {peak_mb:.0f} MB")
    return 0 if times <= BAR else 1


if __name__ == "__main__":
    raise SystemExit(main())
