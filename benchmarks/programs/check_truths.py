"""Do the programs grow as truths.toml says? Seen from outside, without memdiag.

    python benchmarks/programs/check_truths.py [--seconds 120] [--jobs 1] [PROGRAM ...]

Runs each alone and reads the resident memory of its own and its children (what is in no file: Anon
and Shmem of smaps_rollup) four times a second. The rate is a straight line by least squares through
the last 60 % of its loop, per round of the loop; the rounds per second are the program's last
words. Bar: 5 %, for leaks. Of healthy programs the range in the last half is told, without a bar.

What a package loads late is resident memory too: on a machine that does other things as well, torch
and JAX need some two minutes until nothing of it is left in the line.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
from truths import Truth, all_truths, last_words

BAR = 0.05
LATE = 0.6  # of the loop: imports may still go on at its beginning
PAUSE_S = 0.25


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("program", nargs="*", help="all without any")
    options = parser.parse_args()
    truths = all_truths()
    chosen = [truths[name] for name in options.program or truths]
    wrong = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for line, ok in pool.map(lambda truth: checked(truth, options.seconds), chosen):
            print(line, flush=True)
            wrong += not ok
    print(f"{wrong} of {len(chosen)} do not")
    return 1 if wrong else 0


def checked(truth: Truth, seconds: float) -> tuple[str, bool]:
    """A line of the table, and whether the truth is true."""
    if lacking := truth.missing():
        return f"{truth.name}: left out, {lacking} is not installed", True
    readings, output, status = watched(truth, seconds)
    words = last_words(output)
    if status or words is None:
        return f"{truth.name}: ended with {status}: {output.strip()[-300:]}", False
    pace, end_s = words[0] / words[1], readings[-1][0]
    if not truth.leaks:
        late = [size for at, size in readings if at > end_s - words[1] / 2]
        growth = f"{min(late) / 1e6:.1f} to {max(late) / 1e6:.1f} MB in the last half"
        return f"{truth.name}: {growth}, {pace:.1f} rounds/s", True
    at, size = np.array([r for r in readings if r[0] > end_s - LATE * words[1]]).T
    measured = float(np.polyfit(at, size, 1)[0]) / pace
    told = truth.bytes * len(truth.process)
    off = measured / told - 1
    line = f"{truth.name}: {measured:,.0f} per round, {told:,.0f} told ({off:+.1%}), {pace:.1f}/s"
    return line, abs(off) <= BAR


def watched(truth: Truth, seconds: float) -> tuple[list[tuple[float, float]], str, int]:
    """(seconds, bytes) until its last words, its output and its exit status."""
    readings: list[tuple[float, float]] = []
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "output.txt"
        with said.open("w") as output:
            program = subprocess.Popen(
                truth.command(seconds),
                cwd=folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        while program.poll() is None:
            size = size_of_tree(program.pid)
            if size and last_words(said.read_text()) is None:
                readings.append((time.monotonic() - began_s, size))
            time.sleep(PAUSE_S)
        return readings, said.read_text(), program.returncode


def size_of_tree(pid: int) -> float:
    try:
        root = psutil.Process(pid)
        members = [pid, *(child.pid for child in root.children(recursive=True))]
    except psutil.Error:
        return 0.0
    return sum(map(size_of, members))


def size_of(pid: int) -> float:
    """What is private or shared memory of no file, in bytes, shared pages by their part."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    sizes = dict(line.split(":", 1) for line in lines if ":" in line and "rollup" not in line)
    told = (sizes.get(key, "0 kB") for key in ("Pss_Anon", "Pss_Shmem"))
    return sum(1024.0 * int(size.split()[0]) for size in told)


if __name__ == "__main__":
    sys.exit(main())
