"""memdiag, COMMAND or both are killed, stopped and continued at random moments."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from .campaign import Case, Ground, Result, inject
from .effects import (
    PROGRAM,
    UNGATED,
    Effect,
    Setting,
    alone,
    differences,
    effect_of,
    prepared,
    without_status,
)
from .running import MEMDIAG, Ended, Running, blamed, complaints, environ, run

_KILLS = 200
_TARGET_KILLS = 40
_STOPS = 30
_ENDS = 12
_SECONDS = "0.4"
_SETTING = Setting(arguments=("7", "--seconds", _SECONDS))
# From the start of memdiag to its end, about; each case draws its moment from here.
_LONGEST_S = 1.5
# For a COMMAND on a busy machine; it takes half a second.
_PATIENCE_S = 15.0
_AT_A_TIME = 20


def signals(ground: Ground) -> Result:
    """What COMMAND does must be the same; what memdiag has recorded must be readable."""
    chance = ground.chance("signals")
    kept = ground.place("recordings")
    before = alone(ground.place("alone"), _SETTING)
    cases: list[Case] = []

    def add(name: str, times: int, run_one: Callable[..., list[str]], **more: object) -> None:
        for index in range(times):
            at_s = chance.uniform(0.0, _LONGEST_S)
            work = partial(run_one, before=before, at_s=at_s, kept=kept / f"{name}-{index}", **more)
            cases.append(Case(name=f"{name} after {at_s:.3f} s", run=work))

    add("SIGKILL of memdiag", _KILLS, _killed)
    add("SIGKILL of its whole group", _TARGET_KILLS // 2, _group_killed)
    add("SIGKILL of COMMAND", _TARGET_KILLS, _target_killed)
    add("SIGSTOP of memdiag", _STOPS, _stopped, whom="memdiag")
    add("SIGSTOP of COMMAND", _STOPS, _stopped, whom="COMMAND")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        add(f"{number.name} to memdiag", _ENDS, _asked_to_end, number=number)
        add(f"{number.name} to its group", _ENDS // 2, _group_asked, number=number)
    found = inject("signals", ground, cases)
    readable = inject("signals", ground, list(_readings(kept)))
    return Result(
        name="signals",
        injections=found.injections + readable.injections,
        failures=found.failures + readable.failures,
    )


def _start(place: Path, kept: Path) -> tuple[Running, Path]:
    """COMMAND under memdiag, which records to the directory `kept`."""
    work = prepared(place / "under")
    kept.mkdir()
    memdiag = [*MEMDIAG, "run", "-q", "-o", str(kept / "r.csv"), *UNGATED, "--"]
    program = [sys.executable, str(PROGRAM), str(work), *_SETTING.arguments]
    env = environ(place / "under")
    return Running([*memdiag, *program], cwd=work, env=env), work


def _finished(running: Running, work: Path) -> Ended:
    """Wait for COMMAND, which may outlive memdiag, and then for memdiag."""
    until_s = time.monotonic() + _PATIENCE_S
    while _command(running) and time.monotonic() < until_s:
        time.sleep(0.01)
    return running.finish(grace_s=3.0)


def _command(running: Running) -> list[int]:
    """The processes of COMMAND itself."""
    mark = PROGRAM.name.encode()
    found = []
    for pid in running.pids():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if len(words) > 1 and words[1].endswith(mark):
            found.append(pid)
    return found


def _killed(place: Path, *, before: Effect, at_s: float, kept: Path) -> list[str]:
    running, work = _start(place, kept)
    time.sleep(at_s)
    running.send(signal.SIGKILL)
    ended = _finished(running, work)
    after = without_status(effect_of(ended, work))
    # Killed before it came to start anything, memdiag has started nothing.
    found = [] if after.nothing() else differences(without_status(before), after)
    return blamed(ended, [*complaints(ended), *found])


def _group_killed(place: Path, *, before: Effect, at_s: float, kept: Path) -> list[str]:
    running, work = _start(place, kept)
    time.sleep(at_s)
    try:
        os.killpg(running.pid, signal.SIGKILL)
    except ProcessLookupError:
        return [*complaints(running.finish())]
    ended = _finished(running, work)
    return blamed(ended, complaints(ended))


def _target_killed(place: Path, *, before: Effect, at_s: float, kept: Path) -> list[str]:
    running, work = _start(place, kept)
    time.sleep(at_s)
    killed = _command(running)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    ended = _finished(running, work)
    found = complaints(ended)
    if killed and ended.status not in (128 + signal.SIGKILL, 7):
        found.append(f"the status is {ended.status}, that of COMMAND {128 + signal.SIGKILL}")
    elif not killed:
        found += differences(before, effect_of(ended, work))
    return blamed(ended, found)


def _stopped(place: Path, *, before: Effect, at_s: float, kept: Path, whom: str) -> list[str]:
    running, work = _start(place, kept)
    time.sleep(at_s)
    pids = [running.pid] if whom == "memdiag" else _command(running)
    if running.process.poll() is None:
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in pids:
                _send(pid, number)
            time.sleep(0.7 if number is signal.SIGSTOP else 0.0)
    ended = _finished(running, work)
    return blamed(ended, [*complaints(ended), *differences(before, effect_of(ended, work))])


def _asked_to_end(
    place: Path, *, before: Effect, at_s: float, kept: Path, number: signal.Signals
) -> list[str]:
    """Passed on to COMMAND, which dies of it; memdiag may be asked before it has started it."""
    running, work = _start(place, kept)
    time.sleep(at_s)
    running.send(number)
    return _after_asking(running, work, number)


def _group_asked(
    place: Path, *, before: Effect, at_s: float, kept: Path, number: signal.Signals
) -> list[str]:
    running, work = _start(place, kept)
    time.sleep(at_s)
    if running.process.poll() is None:
        os.killpg(running.pid, number)
    return _after_asking(running, work, number)


def _after_asking(running: Running, work: Path, number: signal.Signals) -> list[str]:
    ended = _finished(running, work)
    wanted = {7, 128 + number}
    # The program itself shows a traceback on Ctrl-C, as all Python programs do.
    own = "KeyboardInterrupt" in ended.said and number is signal.SIGINT
    found = [text for text in complaints(ended) if not (own and "Traceback" in text)]
    if ended.status not in wanted | ({1} if own else set()):
        found.append(f"the status is {ended.status}, not one of {sorted(wanted)}")
    return blamed(ended, found)


def _readings(kept: Path) -> Iterator[Case]:
    """`memdiag analyze` of all that was recorded, several recordings at a time."""
    recordings = sorted(str(path) for path in kept.glob("*/r.csv"))
    for first in range(0, len(recordings), _AT_A_TIME):
        some = recordings[first : first + _AT_A_TIME]
        yield Case(
            name=f"recordings {first} to {first + len(some) - 1}",
            run=partial(_read, recordings=some),
            injections=0,
        )


def _read(place: Path, *, recordings: list[str]) -> list[str]:
    # Twenty files, one after the other.
    command = [*MEMDIAG, "analyze", *recordings]
    ended = run(command, cwd=place, env=environ(place), limit_s=20.0)
    return blamed(ended, complaints(ended))


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
