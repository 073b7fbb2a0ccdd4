"""Whether a job that outgrows its limit saves its state before, and a healthy job is left alone.

    python benchmarks/guard.py [--growing 100] [--healthy 100] [--jobs 2] [--limit-by rlimit]

Growing jobs allocate 1 to 500 MB/s (log-uniform) until their cgroup (or RLIMIT_AS, where no cgroup
may be made) kills them. Every other one saves its state in `memdiag.on_pressure`, the rest in a
handler of SIGUSR1 (`--on critical=signal:USR1`). A job counts if its checkpoint is complete and it
was killed later. Each notes when its resident memory passed the level, and when its function ran:
the latency, in sampling intervals of 0.1 s.
Healthy jobs are flat, warm up in several ways, or go up and down, below their limit; `--on` would
stop them at 90% and 95% of it, at a leak, and at a forecast of less than an hour.
Fails where a bar is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from memdiag.capture.process.cgroup import MemoryGroup, memory_group

ROOT = Path(__file__).resolve().parent.parent
LEVEL, INTERVAL_S = 0.8, 0.1
MOST_INTERVALS = 2.0
SHAPES = ("flat", "saturating", "staircase", "linear", "sawtooth")
GROWING = """
import json, os, signal, sys, time
import memdiag
rate, level, how = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
PAGE, STEP_S = os.sysconf("SC_PAGE_SIZE"), 0.01
crossed = None
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE
def save(*_):
    began = time.monotonic()
    late = None if crossed is None else began - crossed
    with open("checkpoint.new", "wb") as file:
        file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    with open("facts.json", "w") as file:
        json.dump({"late_s": late, "resident": resident()}, file)
    os.replace("checkpoint.new", "checkpoint")
if how == "signal":
    signal.signal(signal.SIGUSR1, save)
else:
    memdiag.on_pressure("critical")(save)
held, size, n, began = [], 0.0, 0, time.monotonic()
while True:
    n += 1
    due = (time.monotonic() - began) * rate - size
    if due >= 1e5:
        held.append(bytearray(b"x") * int(min(due, rate * 0.05)))
        size += len(held[-1])
    if crossed is None and resident() >= level:
        crossed = time.monotonic()
    memdiag.step(n)
    time.sleep(STEP_S)
"""
HEALTHY = """
import math, sys, time
import memdiag
shape, top, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
def wanted(at):
    if shape == "flat":
        return 1.0
    if shape == "saturating":
        return 1 - math.exp(-at / 0.15)
    if shape == "staircase":
        return min(1.0, math.ceil(at / 0.08) * 0.1)
    if shape == "linear":
        return min(1.0, at / 0.3)
    return 0.4 + 0.6 * (at * 12 % 1.0)
held, began, n = [], time.monotonic(), 0
while (at := (time.monotonic() - began) / seconds) < 1:
    while len(held) > wanted(at) * top:
        held.pop()
    while len(held) < int(wanted(at) * top):
        held.append(bytearray(b"x") * 1000000)
    n += 1
    memdiag.step(n)
    time.sleep(0.004)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """How a growing job ended. late_s: from the crossing to its function, None if unknown."""

    rate: float
    how: str
    is_saved: bool
    is_killed: bool
    late_s: float | None
    share: float


@contextlib.contextmanager
def group(name: str, limit_bytes: int, parent: MemoryGroup) -> Iterator[Path]:
    """A memory cgroup of this size. Raises OSError."""
    path = parent.levels[-1] / name
    path.mkdir()
    try:
        (path / parent.limit_file).write_text(str(limit_bytes))
        swap = "memory.swap.max" if parent.version == 2 else "memory.memsw.limit_in_bytes"
        with contextlib.suppress(OSError):
            (path / swap).write_text("0" if parent.version == 2 else str(limit_bytes))
        yield path
    finally:
        with contextlib.suppress(OSError):
            path.rmdir()


def memdiag(directory: Path, options: Sequence[str], command: Sequence[str]) -> int:
    """The exit code of a command under `memdiag run`, in this directory."""
    done = subprocess.run(
        [sys.executable, "-m", "memdiag", "run", "-q", "-o", "run.csv", *options, "--", *command],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=(directory / "stderr").open("w"),
        check=False,
        timeout=300,
    )
    return done.returncode


def grow(number: int, rate: float, parent: MemoryGroup | None) -> Grown:
    """One job that grows until it is killed. rate: in MB/s. parent: None to limit addresses."""
    how = ("callback", "signal")[number % 2]
    # Python takes 20 MB with the probe; at least 4 s until the limit, at all rates.
    limit_bytes = int((30 + 4 * rate) * 1e6)
    options = ["--critical-at", f"{LEVEL:.0%}"]
    options += ["--on", "critical=signal:USR1"] * (how == "signal")
    program = [sys.executable, "-c", GROWING, str(rate * 1e6), str(LEVEL * limit_bytes), how]
    with tempfile.TemporaryDirectory(prefix="memdiag-guard-") as name, contextlib.ExitStack() as on:
        directory = Path(name)
        if parent is not None:
            path = on.enter_context(group(f"memdiag-guard-{number}", limit_bytes, parent))
            enter = [
                "sh",
                "-c",
                'echo 0 > "$1/cgroup.procs" && shift && exec "$@"',
                "sh",
                str(path),
            ]
        else:
            enter = ["sh", "-c", 'ulimit -v "$1" && shift && exec "$@"', "sh"]
            enter.append(str((limit_bytes >> 10) + (200 << 10)))
        code = memdiag(directory, options, [*enter, *program])
        is_saved = (directory / "checkpoint").exists()
        facts = json.loads((directory / "facts.json").read_text()) if is_saved else {}
        return Grown(
            rate=rate,
            how=how,
            is_saved=is_saved,
            is_killed=code == 137 if parent is not None else code == 1,
            late_s=facts.get("late_s"),
            share=facts.get("resident", 0) / limit_bytes,
        )


def stay(number: int, seed: int) -> tuple[bool, str]:
    """Whether a healthy job has triggered an action, and what memdiag said of it if it has, or if
    the verdict at its end is wrong.
    """
    chance = random.Random(f"{seed}-{number}")
    shape = SHAPES[number % len(SHAPES)]
    top, seconds = chance.randint(60, 400), chance.uniform(5, 9)
    # Python and the probe are not more than 45 MB, so the job stays below 70 to 85% of its limit.
    limit = (top + 45) / chance.uniform(0.7, 0.85)
    options = ["--limit", f"{limit:.0f}MB", "--warn-at", "90%", "--critical-at", "95%"]
    options += ["--critical-at", "in:1h"]
    for level in ("warn", "critical", "leak"):
        options += ["--on", f"{level}=stop"]
    with tempfile.TemporaryDirectory(prefix="memdiag-guard-") as name:
        directory = Path(name)
        program = [sys.executable, "-c", HEALTHY, shape, str(top), str(seconds)]
        code = memdiag(directory, options, program)
        said = (directory / "stderr").read_text()
        acted = code == 5 or "ending the job" in said
        about = f"{shape} {top} MB {seconds:.1f} s: exit code {code}\n{said}"
        return acted, about if acted or code not in {0, 3} else ""


def main() -> int:
    parser = argparse.ArgumentParser()
    for name, default in (("growing", 100), ("healthy", 100), ("jobs", 2), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--limit-by", choices=("cgroup", "rlimit"), default="cgroup")
    given = parser.parse_args()
    chance = random.Random(given.seed)
    rates = [500.0 ** chance.random() for _ in range(given.growing)]
    parent = memory_group(os.getpid()) if given.limit_by == "cgroup" else None
    with ThreadPoolExecutor(given.jobs) as pool:
        grown = list(pool.map(lambda n: grow(n, rates[n], parent), range(given.growing)))
        stayed = list(pool.map(lambda n: stay(n, given.seed), range(given.healthy)))
    print(f"limit by {'cgroup' if parent is not None else 'RLIMIT_AS'}, seed {given.seed}")
    print("\n| MB/s | how | jobs | saved, then killed | at | latency, median | highest |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for low, high in ((1, 10), (10, 100), (100, 500)):
        for how in ("callback", "signal"):
            _row(
                f"{low} to {high}", how, [g for g in grown if low <= g.rate < high and g.how == how]
            )
    failed = [one for one in grown if not (one.is_saved and one.is_killed)]
    late = [one.late_s / INTERVAL_S for one in grown if one.late_s is not None]
    median = statistics.median(late) if late else 0.0
    print(f"\nall: {len(grown) - len(failed)} of {len(grown)} saved and then killed;")
    print(f"latency: median {median:.1f} intervals of {INTERVAL_S} s")
    acted = sum(one for one, _ in stayed)
    said = [about for _, about in stayed if about]
    print(f"healthy: {acted} of {given.healthy} triggered an action;")
    print(f"{len(said) - acted} others have a wrong verdict in the report at their end")
    print(*failed, *said, sep="\n")
    return 1 if failed or acted or median > MOST_INTERVALS else 0


def _row(rates: str, how: str, jobs: Sequence[Grown]) -> None:
    if not jobs:
        return
    late = sorted(one.late_s / INTERVAL_S for one in jobs if one.late_s is not None) or [0.0]
    good = sum(one.is_saved and one.is_killed for one in jobs)
    share = statistics.median(one.share for one in jobs)
    print(
        f"| {rates} | {how} | {len(jobs)} | {good} | {share:.0%} "
        f"| {statistics.median(late):.1f} | {late[-1]:.1f} |"
    )


if __name__ == "__main__":
    sys.exit(main())
