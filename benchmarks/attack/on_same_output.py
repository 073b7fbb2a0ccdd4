"""Two measurements that are started at once with the same -o: one records, one is refused."""

from __future__ import annotations

import random
import time
from functools import partial
from pathlib import Path

from .campaign import Case, Ground, Result, inject
from .effects import UNGATED, prepared
from .running import MEMDIAG, Running, blamed, complaints, environ, run

_ROUNDS = 8
_USAGE = 2
# Says that it was started, and waits until it is told to end.
_COMMAND = """
import os, sys, time
open(f"started-{sys.argv[1]}", "w").close()
until = time.monotonic() + 8
while not os.path.exists("go") and time.monotonic() < until:
    time.sleep(0.01)
time.sleep(0.5)  # a recording of one reading is no recording
sys.exit(7)
"""
_PATIENCE_S = 4.0


def same_output(ground: Ground) -> Result:
    """With and without --force, for CSV and Parquet."""
    chance = ground.chance("same output")
    cases = [
        Case(
            name=f"{name} {' '.join(options)}, round {number}",
            run=partial(_both, name=name, options=options, chance=random.Random(chance.random())),
        )
        for number in range(_ROUNDS)
        for name in ("x.csv", "x.parquet")
        for options in ((), ("--force",))
    ]
    # Each is two at a time already.
    return inject("same output", ground, cases, jobs=1)


def _both(place: Path, *, name: str, options: tuple[str, ...], chance: random.Random) -> list[str]:
    work = prepared(place / "run")
    if options:
        (work / "x.csv").write_text("step,rss_mb\n1,2\n")
    command = [*MEMDIAG, "run", "-q", "-o", name, *options, *UNGATED, "--", MEMDIAG[0], "-c"]
    runs = []
    for token in "ab":
        words = [*command, _COMMAND, token]
        runs.append(Running(words, cwd=work, env=environ(place / "run")))
        time.sleep(chance.choice((0.0, 0.0, 0.01, 0.05)))
    # The one that is refused ends by itself.
    until_s = time.monotonic() + _PATIENCE_S
    while all(one.process.poll() is None for one in runs) and time.monotonic() < until_s:
        time.sleep(0.01)
    (work / "go").touch()
    ended = [one.finish() for one in runs]
    started = len(list(work.glob("started-*")))
    found = [text for one in ended for text in complaints(one)]
    if started != 1:
        found.append(f"{started} commands were started")
    statuses = sorted(one.status or 0 for one in ended)
    if statuses != [_USAGE, 7]:
        found.append(f"the statuses are {statuses}, not [2, 7]")
    found += _unreadable(work, name, place)
    return blamed(ended[1], found)


def _unreadable(work: Path, name: str, place: Path) -> list[str]:
    """Whether the recording of the winner is whole."""
    ended = run([*MEMDIAG, "analyze", name], cwd=work, env=environ(place / "run"))
    found = complaints(ended)
    if ended.status not in (0, 1, 3, 4):
        found.append(f"analyze ends with {ended.status}: {ended.said.strip()[-200:]}")
    return found
