"""Fuzzing: hostile files for the readers of recordings, hostile rings for the reader of channels.

Input N of a seed is always the same; `python -m benchmarks.attack --only inputs --seed S --input N`
tries one again.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from . import mutations
from .campaign import Ground, Result, remove
from .running import LIMIT_S, ROOT, OwnTime

# Files are what comes from strangers most often.
_SHARE = {"inputs": 0.7, "rings": 0.3}
# Imports of polars and scipy, before the first input.
_START_S = 30.0
_MOST_KINDS = 25


@dataclass(slots=True, kw_only=True)
class _Tally:
    """What one kind of input has brought to light. failures: by where it happened."""

    tried: int = 0
    failures: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def note(self, number: int, what: str, where: str) -> None:
        self.failures.setdefault(where, []).append((number, what))


def inputs(ground: Ground) -> Result:
    """Damaged files through every reader, some of them through all of `memdiag analyze`."""
    return _fuzz("inputs", ground)


def rings(ground: Ground) -> Result:
    """Damaged and invented rings through the reader of channels."""
    return _fuzz("rings", ground)


def again(kind: str, seed: int, number: int) -> int:
    """Try one input again, in this process, and let it fail; the exit status."""
    from . import worker

    place = Path(os.environ.get("TMPDIR", "/tmp")) / f"attack-input-{os.getpid()}"
    place.mkdir()
    try:
        tries = worker.try_input if kind == "inputs" else worker._rings(place)
        tries(number, random.Random(f"{seed}/{kind}/{number}"), place)
    finally:
        remove(place)
    print(f"input {number} of seed {seed}: nothing wrong")
    return 0


def _fuzz(kind: str, ground: Ground) -> Result:
    until_s = time.monotonic() + ground.minutes * 60 * _SHARE[kind]
    tally = _Tally()
    with ThreadPoolExecutor(max_workers=ground.jobs) as pool:
        lanes = [
            pool.submit(_lane, kind, ground, first, until_s, tally) for first in range(ground.jobs)
        ]
        for lane in lanes:
            lane.result()
    failures = []
    for where, found in sorted(tally.failures.items())[:_MOST_KINDS]:
        number, what = min(found)
        saved = _save(kind, ground, number)
        many = f" ({len(found)} times)" if len(found) > 1 else ""
        failures.append(f"{where}: {what}{many} [seed {ground.seed}, input {number}, {saved}]")
    return Result(name=kind, injections=tally.tried, failures=tuple(failures))


def _lane(kind: str, ground: Ground, first: int, until_s: float, tally: _Tally) -> None:
    """Every `jobs`-th input, by one worker after another."""
    number = first
    while time.monotonic() < until_s:
        place = ground.place(kind)
        worker = _Worker(kind, ground, number, place)
        try:
            number = worker.follow(until_s, tally) + ground.jobs
        finally:
            worker.close()
            remove(place)


class _Worker:
    """A process that tries inputs, and the watch over it."""

    def __init__(self, kind: str, ground: Ground, first: int, place: Path) -> None:
        arguments = [kind, str(ground.seed), str(first), str(ground.jobs), str(place)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.attack.worker", *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(place), "POLARS_MAX_THREADS": "1"},
            start_new_session=True,
        )
        self._number = first
        self._is_ready = False
        self._rest = b""

    def follow(self, until_s: float, tally: _Tally) -> int:
        """Count what it tries until time is up, it hangs, or it dies; the last number."""
        clock = OwnTime(self._process.pid)
        while time.monotonic() < until_s:
            lines = self._lines()
            if lines is None:
                code = self._process.wait()
                if code:
                    said = f"died with {code}"
                    tally.note(self._number, f"the reader {said}", said)
                break
            for line in lines:
                self._take(line, tally)
            if lines:
                clock = OwnTime(self._process.pid)
            elif clock.exceeds(LIMIT_S if self._is_ready else _START_S):
                tally.note(self._number, f"hangs for more than {LIMIT_S:g} s", "hang")
                break
        return self._number

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def _take(self, line: bytes, tally: _Tally) -> None:
        if line.startswith(b"{"):
            found = json.loads(line)
            tally.note(found["number"], found["what"], found["where"])
        else:
            # The first one brings the imports with it.
            self._is_ready = self._is_ready or tally.tried > 0 or int(line) != self._number
            self._number = int(line)
            tally.tried += 1

    def _lines(self) -> list[bytes] | None:
        """The lines that came, perhaps none; None once it has ended."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], 0.2)
        if not ready:
            return []
        data = os.read(self._process.stdout.fileno(), 1 << 16)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines


def _save(kind: str, ground: Ground, number: int) -> str:
    """Keep a file that made something fail; where it is."""
    if kind != "inputs":
        return "rings are made anew from the seed"
    made = mutations.hostile(random.Random(f"{ground.seed}/{kind}/{number}"))
    path = ground.kept / f"{ground.seed}-{number}-{made.name}"
    try:
        ground.kept.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made.content)
        if made.sidecar is not None:
            path.with_name(f"{path.stem}.meta.json").write_bytes(made.sidecar)
    except OSError as error:
        return f"not saved: {error}"
    return str(path)
