"""A COMMAND that writes garbage into its own channel ends as it does alone, and is recorded."""

from __future__ import annotations

import csv
import math
import os
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from memdiag.probe import ring_format

from . import forged
from .campaign import Case, Ground, Result, inject
from .effects import Setting, alone, differences, under
from .running import MEMDIAG, blamed, complaints, environ, run

_ROUNDS = 70
_MANY = 2000
_SETTING = Setting(arguments=("7", "--seconds", "0.4", "--rings", "BASE/rings"))
_LATEST_S = 60.0


def own_channel(ground: Ground) -> Result:
    """Rings of random nonsense, and things that are no rings."""
    chance = ground.chance("own channel")
    fills: dict[str, Callable[[Path], object]] = {
        f"hostile rings {number}": partial(_nonsense, seed=chance.random())
        for number in range(_ROUNDS)
    }
    fills |= {
        "FIFOs": partial(_things, make=os.mkfifo),
        "directories": partial(_things, make=os.mkdir),
        "endless files": partial(_things, make=_endless),
        "dangling links": partial(_things, make=partial(os.symlink, "nowhere")),
        "links to /dev/zero": partial(_things, make=partial(os.symlink, "/dev/zero")),
        "links to a file of root's": partial(_things, make=partial(os.symlink, "/etc/shadow")),
        "the watcher's file as a FIFO": lambda place: os.mkfifo(place / ring_format.WATCHER),
        "very many rings": _very_many,
        "very many files": _very_many_files,
        "one ring of all processes": _of_all,
    }
    cases = [Case(name=name, run=partial(_judged, fill=fill)) for name, fill in fills.items()]
    return inject("own channel", ground, cases)


def _judged(place: Path, *, fill: Callable[[Path], object]) -> list[str]:
    before = alone(place, replace(_SETTING, arguments=_SETTING.arguments[:-2]))
    after, ended = under(place, replace(_SETTING, planted=partial(_planted, fill=fill)))
    recording = place / "under" / "rec" / "r.csv"
    found = [*complaints(ended), *differences(before, after), *_doubts(recording)]
    # What is printed of it later must not do any harm either.
    shown = run([*MEMDIAG, "analyze", str(recording)], cwd=place, env=environ(place))
    found += [f"analyze: {text}" for text in complaints(shown)]
    if b"\x1b" in shown.stdout:
        found.append("analyze: sends an escape sequence to stdout")
    return blamed(ended, found)


def _planted(base: Path, *, fill: Callable[[Path], object]) -> None:
    (base / "rings").mkdir()
    fill(base / "rings")


def _doubts(recording: Path) -> list[str]:
    """What a recording must have for all the nonsense: COMMAND's memory, at sound times."""
    if not recording.exists():
        return ["nothing was recorded"]
    with recording.open(newline="", errors="replace") as file:
        rows = [row for row in csv.DictReader(file) if row.get("process")]
    measured = [row for row in rows if row["process"] == "tree" and row.get("rss_bytes")]
    if len(measured) < 3:
        return [f"of the tree's memory {len(measured)} readings were recorded"]
    odd = [row["at_s"] for row in rows if not 0 <= _number(row["at_s"]) <= _LATEST_S]
    return [f"{len(odd)} rows lie at times such as {odd[0]} s"] if odd else []


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _nonsense(place: Path, *, seed: float) -> None:
    chance = random.Random(seed)
    valid = forged.ring(1, 1, time.monotonic())
    for index, name in enumerate(("own-1", "own-2", "1-1", "99999-1", "x")):
        if chance.random() < 0.6 or index == 0:
            data = forged.hostile(chance, valid, time.monotonic() + 1)
            (place / f"{name}{ring_format.SUFFIX}").write_bytes(data)


def _things(place: Path, *, make: Callable[[Path], object]) -> None:
    for name in ("1-1", "own", "x-y", "99-99"):
        make(place / f"{name}{ring_format.SUFFIX}")


def _endless(path: Path) -> None:
    with path.open("wb") as file:
        file.write(forged.facts(1, 1))
        file.truncate(1 << 40)


def _very_many(place: Path) -> None:
    """More processes than there can be, each with a ring of one page."""
    for number in range(_MANY):
        name = f"{100_000 + number}-1{ring_format.SUFFIX}"
        (place / name).write_bytes(forged.facts(100_000 + number, number, role=f"role {number}"))


def _very_many_files(place: Path) -> None:
    for number in range(5 * _MANY):
        (place / f"{number}{ring_format.SUFFIX}").touch()


def _of_all(place: Path) -> None:
    """Rings in the names of memdiag itself and of others."""
    for pid in (1, os.getpid(), os.getppid()):
        data = forged.ring(pid, forged.started_ticks(pid), time.monotonic())
        (place / f"{pid}-1{ring_format.SUFFIX}").write_bytes(data)
    shutil.copy(place / f"1-1{ring_format.SUFFIX}", place / f"own-7{ring_format.SUFFIX}")
