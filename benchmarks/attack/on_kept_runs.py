"""Traps of another user where runs are kept, for `run`, `list`, `report`, `compare`, `clean`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import canaries
from .campaign import Case, Ground, Result, inject
from .effects import UNGATED, prepared
from .running import MEMDIAG, Ended, blamed, complaints, environ, run
from .users import ATTACKER, VICTIM

_ID = "20260102-030405-x-1"
_ROWS = "at_s,step,phase,pid,process,rss_bytes\n" + "".join(
    f"{n / 10},{n},,5,main,{10**8 + n * 10**6}\n" for n in range(100)
)
_REPORT = json.dumps({"schema_version": 1, "verdict": "stable\x1b[31m"}, indent=2)
_SIDECAR = json.dumps(
    {"memdiag_recording": 2, "about": {"command": ["\x1b]0;title\x07", "\u202e"]}}, indent=1
)
_FILES = {"recording.csv": _ROWS, "report.json": _REPORT, "recording.meta.json": _SIDECAR}
_COMMAND = "print('started')\nimport time\ntime.sleep(0.3)\nraise SystemExit(7)"
_AFTERWARDS = (
    ("list",),
    ("list", "--json"),
    ("report",),
    ("report", _ID),
    ("report", "last", "-o", "BASE/home/r.html"),
    ("compare", "last~1", "last"),
    ("clean", "--keep", "0", "--yes"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """work: the working directory. roots: files of the victim's, which must not change."""

    work: Path
    roots: Path
    victim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trap:
    """plant: makes it. named: as MEMDIAG_DIR, "" for the default; a place that was named may be
    refused."""

    name: str
    plant: Callable[[_Scene], object]
    named: str = ""


def kept_runs(ground: Ground) -> Result:
    """`memdiag run` without -o, then every command that looks at what was kept."""
    if os.geteuid() != 0:
        return Result(name="kept-runs", injections=0, skipped=(ground.users.why_not,))
    victims = {"root": 0} if ground.users.why_no_victim else {"root": 0, "a user": VICTIM}
    cases = [
        Case(
            name=f"{trap.name}, {who}",
            run=partial(_trapped, ground=ground, trap=trap, victim=victim),
            injections=1 + len(_AFTERWARDS),
        )
        for who, victim in victims.items()
        for trap in _traps()
    ]
    return inject("kept-runs", ground, cases)


def _traps() -> Iterator[_Trap]:
    for named in ("", "kept", "kept \x1b[31m\n"):
        place, means = named or ".memdiag", "named" if named else "default"
        means += " with escapes" * ("\x1b" in named)
        for what, plant in _PLACES.items():
            name = f"{what} as the {means} place"
            yield _Trap(name=name, plant=partial(plant, path=place), named=named)
    for what, put in _IN_RUNS.items():
        yield _Trap(name=f"{what} among the victim's runs", plant=partial(_among, put=put))


def _trapped(place: Path, *, ground: Ground, trap: _Trap, victim: int) -> list[str]:
    base = place / "run"
    prepared(base, victim)
    base.chmod(0o755)
    roots = canaries.plant(base / "home")
    work = place / "shared"
    work.mkdir()
    work.chmod(0o1777)
    scene = _Scene(work=work, roots=roots, victim=victim)
    for path in (roots, *roots.rglob("*")):
        os.chown(path, victim, victim)
    trap.plant(scene)
    before, theirs = canaries.watched(roots), _of_attacker(work)
    python = ground.users.python if victim else MEMDIAG[0]
    env = environ(base, **({"MEMDIAG_DIR": trap.named} if trap.named else {}))
    call = partial(run, cwd=work, env=env, user=victim or None)
    memdiag = (python, *MEMDIAG[1:])
    ended = call([*memdiag, "run", "-q", *UNGATED, "--", python, "-c", _COMMAND])
    found = [*complaints(ended)]
    refused = ended.status == 2 and ended.stdout == b"" and bool(trap.named)
    if (ended.status, ended.stdout) != (7, b"started\n") and not refused:
        found.append(f"the status is {ended.status}, alone 7, stdout {ended.stdout[:40]!r}")
    found = blamed(ended, found)
    for words in _AFTERWARDS:
        ended = call([*memdiag, *(word.replace("BASE", str(base)) for word in words)])
        found += blamed(ended, [*complaints(ended), *_shown(ended)])
    changes = [*before.changes(), *_changes(theirs, _of_attacker(work))]
    return found + blamed(ended, changes)


def _shown(ended: Ended) -> Iterator[str]:
    """What a command may not print."""
    if b"\x1b" in ended.stdout or "\u202e".encode() in ended.stdout:
        yield "sends an escape sequence to stdout"
    if b"of the user's" in ended.stdout:
        yield "prints a file that is not a recording"


def _of_attacker(work: Path) -> dict[str, bytes]:
    """The attacker's files and what they hold, in directories that a link does not lead to."""
    return {
        str(path.relative_to(work)): path.read_bytes() if path.is_file() else b""
        for path in work.rglob("*")
        if path.lstat().st_uid == ATTACKER and not path.is_symlink() and not path.is_fifo()
    }


def _changes(before: dict[str, bytes], after: dict[str, bytes]) -> Iterator[str]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield f"the attacker's {name!r} was made, changed or removed"


# -- in the place of the place -------------------------------------------------------------------


def _give(path: Path, user: int = ATTACKER) -> None:
    """Everything below it, too."""
    for one in (path, *(path.rglob("*") if not path.is_symlink() else ())):
        os.lchown(one, user, user)


def _link(scene: _Scene, path: str) -> None:
    (scene.work / path).symlink_to(scene.roots / "directory")
    _give(scene.work / path)


def _dangling(scene: _Scene, path: str) -> None:
    (scene.work / path).symlink_to(scene.roots / "made")
    _give(scene.work / path)


def _fifo(scene: _Scene, path: str) -> None:
    os.mkfifo(scene.work / path, 0o666)
    _give(scene.work / path)


def _theirs(scene: _Scene, path: str) -> None:
    """A place of the attacker's that everybody may write to, with a run in it."""
    place = scene.work / path
    _run_in(place / "runs")
    for directory in (place, place / "runs"):
        directory.chmod(0o777)
    _give(place)


def _linked_runs(scene: _Scene, path: str) -> None:
    place = scene.work / path
    place.mkdir()
    (place / "runs").symlink_to(scene.roots / "directory")
    _give(place, scene.victim)


_PLACES = {
    "a link": _link,
    "a link to nowhere": _dangling,
    "a FIFO": _fifo,
    "a directory of the attacker's": _theirs,
    "a directory with a link to the runs": _linked_runs,
}


# -- among the runs ------------------------------------------------------------------------------


def _among(scene: _Scene, put: Callable[[Path, _Scene], object]) -> None:
    """In runs of the victim's that everybody may write to, beside a run of the victim's own."""
    place = scene.work / ".memdiag"
    _run_in(place / "runs", "20260101-000000-own-1")
    _give(place, scene.victim)
    (place / "runs").chmod(0o777)
    put(place / "runs", scene)


def _run_in(runs: Path, name: str = _ID) -> Path:
    made = runs / name
    made.mkdir(parents=True)
    for file, text in _FILES.items():
        (made / file).write_text(text)
    return made


def _of_theirs(runs: Path, scene: _Scene) -> None:
    _give(_run_in(runs))


def _linked(runs: Path, scene: _Scene) -> None:
    (runs / _ID).symlink_to(scene.roots / "directory")
    _give(runs / _ID)


def _with_link(name: str, runs: Path, scene: _Scene) -> None:
    """A run of the victim's, in which the attacker has replaced a file by a link."""
    made = _run_in(runs)
    _give(made, scene.victim)
    made.chmod(0o777)
    (made / name).unlink()
    (made / name).symlink_to(scene.roots / "secret")
    os.lchown(made / name, ATTACKER, ATTACKER)


def _with_file(runs: Path, scene: _Scene) -> None:
    made = _run_in(runs)
    _give(made, scene.victim)
    (made / "report.json").unlink()
    (made / "\x1b[2J").write_text("theirs\n")
    os.chown(made / "\x1b[2J", ATTACKER, ATTACKER)


def _with_escapes(runs: Path, scene: _Scene) -> None:
    _give(_run_in(runs, "20260102-030405-\x1b[31m\n-1"), scene.victim)


_IN_RUNS: dict[str, Callable[[Path, _Scene], object]] = {
    "a run of the attacker's": _of_theirs,
    "a link": _linked,
    **{f"a link as {name}": partial(_with_link, name) for name in _FILES},
    "a file in a run without a report": _with_file,
    "a name with escapes": _with_escapes,
}
