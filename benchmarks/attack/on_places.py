"""FIFOs, sockets, directories, devices and endless files at every path that memdiag opens."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from . import forged
from .campaign import Case, Ground, Result, inject
from .effects import Setting, alone, differences, prepared, under
from .on_attaching import hurt
from .running import (
    LIMIT_S,
    MEMDIAG,
    Running,
    blamed,
    complaints,
    environ,
    run,
)

_SPARSE_BYTES = 1 << 40
# So that an endless file is MemoryError at worst, and no trouble to the machine.
_ROOM = "ulimit -v 8000000;"
_IN_ROOM = ("/bin/sh", "-c", f'{_ROOM} exec "$@"', "sh")
_ENDS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A path that memdiag opens: below the directory of a run.

    may_refuse: the user has named it, and is told that it will not do before anything starts.
    """

    name: str
    path: str
    options: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    recorded: bool = True
    may_refuse: bool = False


# The maker's number is one that no process has.
_DEAD = "tmp/memdiag-{uid}/{dead}-1-abcdef01"
_RUN = (
    Place(name="a ring of a dead run", path=f"{_DEAD}/1-1.ring"),
    Place(name="the watcher's file of a dead run", path=f"{_DEAD}/watcher"),
    Place(name="a dead run", path=_DEAD),
    Place(name="TMPDIR/memdiag-UID", path="tmp/memdiag-{uid}"),
    Place(
        name="XDG_RUNTIME_DIR/memdiag",
        path="runtime/memdiag",
        env=(("XDG_RUNTIME_DIR", "BASE/runtime"),),
    ),
    Place(name="XDG_RUNTIME_DIR", path="runtime", env=(("XDG_RUNTIME_DIR", "BASE/runtime"),)),
    Place(name="pyproject.toml", path="work/pyproject.toml", may_refuse=True),
    Place(
        name="the step summary",
        path="rec/summary",
        env=(("GITHUB_STEP_SUMMARY", "BASE/rec/summary"),),
    ),
    Place(name="the recording", path="rec/r.csv", may_refuse=True),
    Place(name="the recording, --force", path="rec/r.csv", options=("--force",), may_refuse=True),
    Place(name="the sidecar", path="rec/r.meta.json", may_refuse=True),
    Place(
        name="the sidecar, --force", path="rec/r.meta.json", options=("--force",), may_refuse=True
    ),
    *(
        Place(name=option, path="rec/report", options=(option, "BASE/rec/report"), may_refuse=True)
        for option in ("--json-file", "--junitxml", "--markdown", "--html", "--png", "--svg")
    ),
    Place(
        name="--tags-from", path="rec/log", options=("--tags-from", "BASE/rec/log"), may_refuse=True
    ),
)


def places(ground: Ground) -> Result:
    """Each hostile thing at each place, for `run`, `watch`, `analyze`, `compare` and `doctor`."""
    cases = [
        Case(
            name=f"run: {thing} as {place.name}",
            run=partial(_run, place_of_it=place, thing=thing),
        )
        for place in _RUN
        for thing in _THINGS
    ]
    cases += [
        Case(name=f"{name}: {thing}", run=partial(_call, call=call, thing=thing))
        for name, call in _CALLS.items()
        for thing in _THINGS
    ]
    cases += [
        Case(
            name=f"analyze a FIFO, {number.name} after {after_s} s",
            run=partial(_ended, number=number, after_s=after_s),
        )
        for number in _ENDS
        for after_s in (0.5, 1.0)
    ]
    cases += [
        Case(name=f"watch: mapped {thing}", run=partial(_mapped, thing=thing)) for thing in _MAPPED
    ]
    cases += [
        Case(name=f"watch: {thing} as {name}", run=partial(_watched, thing=thing, path=path))
        for name, path in (("a ring", "channel/{pid}-2.ring"), ("the channel", "channel"))
        for thing in _THINGS
    ]
    return inject("places", ground, cases)


# -- the things --------------------------------------------------------------------------------


def _make(thing: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    for parent in (path.parent, path.parent.parent):
        if parent.parent.name == "tmp" or parent.parent.parent.name == "tmp":
            parent.chmod(0o700)
    _THINGS[thing](path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        # A socket's path may be 107 bytes long.
        made.bind(f"/proc/self/fd/{os.open(path.parent, os.O_RDONLY)}/{path.name}")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(_SPARSE_BYTES)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _closed(path: Path) -> None:
    path.write_text("closed\n")
    path.chmod(0)


def _garbage(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 99 + b"memdiag")


def _link_to_fifo(path: Path) -> None:
    os.mkfifo(f"{path}-fifo")
    path.symlink_to(f"{path}-fifo")


_THINGS: dict[str, Callable[[Path], object]] = {
    "a FIFO": partial(os.mkfifo, mode=0o600),
    "a socket": _socket,
    "a directory": partial(Path.mkdir, mode=0o700),
    "a dangling link": lambda path: path.symlink_to("nowhere/at/all"),
    "a link to itself": _loop,
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to a FIFO": _link_to_fifo,
    "a link to a terminal": lambda path: path.symlink_to("/dev/tty"),
    "an endless file": _sparse,
    "garbage": _garbage,
    "a closed file": _closed,
}


# -- run ---------------------------------------------------------------------------------------


def _run(place: Path, *, place_of_it: Place, thing: str) -> list[str]:
    setting = Setting(
        within=_ROOM if thing in ("an endless file", "a link to /dev/zero") else "",
        options=place_of_it.options,
        env=place_of_it.env,
        recorded=place_of_it.recorded,
        arguments=("7", "--seconds", "0.2"),
    )
    before = alone(place, setting)
    path = place_of_it.path.format(uid=os.getuid(), dead=_dead_pid())
    setting = replace(setting, planted=partial(_plant_below, thing=thing, path=path))
    after, ended = under(place, setting)
    after.tree.pop("pyproject.toml", None)
    after.tree.pop("pyproject.toml-fifo", None)
    found = complaints(ended)
    refused = not (after.stdout or after.own_lines or after.tree)
    if not (refused and place_of_it.may_refuse and ended.status == 2):
        found += differences(before, after)
    return blamed(ended, found)


def _plant_below(base: Path, *, thing: str, path: str) -> None:
    if path == "runtime/memdiag":
        (base / "runtime").mkdir(mode=0o700)
    _make(thing, base / path)


def _dead_pid() -> int:
    """A number that no process has, and none will soon."""
    with subprocess.Popen(["true"]) as process:
        return process.pid


# -- the other commands ------------------------------------------------------------------------

_KEPT = "20260102-030405-x-1"
_ROWS = "step,rss_mb\n" + "".join(f"{n},{100 + n % 7}\n" for n in range(200))


def _call(place: Path, *, call: tuple[str, tuple[str, ...]], thing: str) -> list[str]:
    path, arguments = call
    base = place / "under"
    work = prepared(base)
    (work / "a.csv").write_text(_ROWS)
    (work / "b.csv").write_text(_ROWS)
    target = base / path.format(uid=os.getuid(), dead=_dead_pid())
    _make(thing, target)
    if "mlruns" in path:
        (target.parent / "tame").write_text(
            "".join(f"{1700000000000 + n} 5.5 {n}\n" for n in range(99))
        )
    command = [word.replace("BASE", str(base)) for word in arguments]
    ended = run(
        [*_IN_ROOM, *MEMDIAG, *command],
        cwd=work,
        env=environ(base),
        limit_s=LIMIT_S,
    )
    return blamed(ended, complaints(ended))


_CALLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "analyze, sidecar": ("work/a.meta.json", ("analyze", "a.csv")),
    "analyze, pyproject.toml": ("work/pyproject.toml", ("analyze", "a.csv")),
    "analyze, a metric of MLflow's": (
        "work/mlruns/0/run/metrics/rss",
        ("analyze", "mlruns/0/run/metrics"),
    ),
    "analyze, mlruns": ("work/mlruns/0/run/metrics/rss", ("analyze", "mlruns")),
    "analyze, a directory with it": ("work/runs/x.csv", ("analyze", "runs")),
    "analyze, events in a directory": ("work/runs/events.out.tfevents.1.x", ("analyze", "runs")),
    "analyze, --json-file": ("work/report", ("analyze", "a.csv", "--json-file", "report")),
    **{
        f"analyze, {option}": ("work/report", ("analyze", "a.csv", option, "report"))
        for option in ("--markdown", "--html", "--png", "--svg")
    },
    "compare, sidecar": ("work/a.meta.json", ("compare", "a.csv", "b.csv")),
    **{
        f"{command[0]}, {what}": (f"work/.memdiag{path}", command)
        for command in (("list",), ("report",), ("clean", "--keep", "0", "--yes"))
        for what, path in (
            ("the place for runs", ""),
            ("the runs", "/runs"),
            ("a run", f"/runs/{_KEPT}"),
            ("a recording", f"/runs/{_KEPT}/recording.csv"),
            ("a sidecar", f"/runs/{_KEPT}/recording.meta.json"),
            ("a report", f"/runs/{_KEPT}/report.json"),
        )
    },
    "report, --output": ("work/r.html", ("report", "a.csv", "-o", "r.html")),
    "doctor, TMPDIR/memdiag-UID": ("tmp/memdiag-{uid}", ("doctor",)),
    "doctor, pyproject.toml": ("work/pyproject.toml", ("doctor",)),
}


def _ended(place: Path, *, number: signal.Signals, after_s: float) -> list[str]:
    """A pipe without a writer is waited for, until the person has had enough."""
    work = prepared(place / "under")
    os.mkfifo(work / "log")
    running = Running([*MEMDIAG, "analyze", "log"], cwd=work, env=environ(place / "under"))
    time.sleep(after_s)
    running.send(number)
    ended = running.finish()
    return blamed(ended, complaints(ended))


# -- watch -------------------------------------------------------------------------------------


_MAPPED = ("a FIFO", "an endless file", "a link to /dev/zero", "a directory", "garbage", "nothing")
_MAPPING = """
import mmap, sys, time
file = open(sys.argv[1], "r+b")
held = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)
print("ready", flush=True)
time.sleep(60)
"""


def _mapped(place: Path, *, thing: str) -> list[str]:
    """A target of the same user's has mapped something with the name of Python's library."""
    base = place / "under"
    work = prepared(base)
    library = work / "libpython3.11.so.1.0"
    library.write_bytes(bytes(4096))
    with _target([sys.executable, "-c", _MAPPING, str(library)]) as target:
        library.unlink()
        if thing != "nothing":
            # The name under which the kernel shows what was removed.
            _make(thing, work / f"{library.name} (deleted)")
        options = ["--attach", "--duration", "0.3s", "-o", str(base / "rec" / "r.csv")]
        ended = run(
            [*_IN_ROOM, *MEMDIAG, "watch", "--pid", str(target.pid), *options],
            cwd=work,
            env=environ(base),
            limit_s=8.0,  # two seconds for the probe that does not come
        )
        found = [*complaints(ended), *hurt(target)]
    return blamed(ended, found)


def _watched(place: Path, *, thing: str, path: str) -> list[str]:
    """In the channel that the target's environment names, which is the user's own."""
    base = place / "under"
    work = prepared(base)
    code = "import time\nprint('ready', flush=True)\ntime.sleep(60)\n"
    named = {"MEMDIAG_CHANNEL": str(base / "channel")}
    with _target([sys.executable, "-c", code], named) as target:
        if path != "channel":
            (base / "channel").mkdir(mode=0o700)
            data = bytes(forged.facts(target.pid, forged.started_ticks(target.pid)))
            (base / "channel" / f"{target.pid}-1.ring").write_bytes(data)
        _make(thing, base / path.format(pid=target.pid))
        options = ["--duration", "0.3s", "-q", "-o", str(base / "rec" / "r.csv")]
        ended = run(
            [*_IN_ROOM, *MEMDIAG, "watch", "--pid", str(target.pid), *options],
            cwd=work,
            env=environ(base),
        )
    found = complaints(ended)
    if not (base / "rec" / "r.csv").exists():
        found.append("nothing was recorded")
    return blamed(ended, found)


@contextmanager
def _target(
    command: list[str], env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()
