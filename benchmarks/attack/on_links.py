"""Links under the names of files that a victim is about to make in a directory open to all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import canaries
from .campaign import Case, Ground, Result, inject
from .effects import UNGATED, prepared
from .running import MEMDIAG, blamed, complaints, environ, run
from .users import ATTACKER, VICTIM

# How many of the next process numbers get a link each.
_AHEAD = 600
_TEMPORARY = (
    ".x.meta.json.{pid}.tmp",
    ".x.csv.{pid}.tmp",
    ".x.parquet.{pid}.tmp",
    ".r.json.{pid}.tmp",
    "x.csv.{pid}.tmp",
)
_FINAL = ("x.meta.json", "x.csv", "x.parquet", "r.json", "r.xml", "r.md", "r.html")
_REPORTS = (
    *("--json-file", "r.json", "--junitxml", "r.xml", "--markdown", "r.md"),
    *("--html", "r.html"),
)
_KINDS = ("link", "link to nowhere", "FIFO", "directory", "file")
_COMMAND = "print('started')\nimport time\ntime.sleep(0.3)\nraise SystemExit(7)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trap:
    """What is planted, under which names, and what the victim does.

    is_temporary: under names for which the victim has asked nobody; else under those that it has
    named itself, where it may be refused.
    """

    kind: str
    is_temporary: bool
    output: str
    options: tuple[str, ...] = ()


def links(ground: Ground) -> Result:
    """`memdiag run -o x.csv` in a directory that everybody may write to, full of traps."""
    if os.geteuid() != 0:
        return Result(name="links", injections=0, skipped=(ground.users.why_not,))
    victims = {"root": 0} if ground.users.why_no_victim else {"root": 0, "a user": VICTIM}
    traps = [
        _Trap(kind=kind, is_temporary=is_temporary, output=output, options=options)
        for kind in _KINDS
        for is_temporary in (True, False)
        for output, options in (
            ("x.csv", _REPORTS),
            ("x.csv", ("--force", *_REPORTS)),
            ("x.parquet", ("--force",)),
        )
    ]
    cases = [
        Case(
            name=f"{trap.kind} under {'temporary' if trap.is_temporary else 'its'} names, "
            f"{trap.output} {trap.options[:1]}, {who}",
            run=partial(_trapped, ground=ground, trap=trap, victim=victim),
        )
        for who, victim in victims.items()
        for trap in traps
    ]
    return inject("links", ground, cases)


def _trapped(place: Path, *, ground: Ground, trap: _Trap, victim: int) -> list[str]:
    base = place / "run"
    prepared(base, victim)
    base.chmod(0o755)
    roots = canaries.plant(base / "home")
    for path in (roots, *roots.rglob("*")):
        os.chown(path, victim, victim)
    before = canaries.watched(roots)
    shared = place / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    for name in _names(trap):
        _plant(shared / name, trap.kind, roots)
    python = ground.users.python if victim else MEMDIAG[0]
    command = ["run", "-q", "-o", trap.output, *trap.options, *UNGATED, "--"]
    ended = run(
        [python, *MEMDIAG[1:], *command, python, "-c", _COMMAND],
        cwd=shared,
        env=environ(base),
        user=victim or None,
    )
    found = [*complaints(ended), *before.changes()]
    refused = ended.status == 2 and ended.stdout == b""
    if (ended.status, ended.stdout) != (7, b"started\n") and not refused:
        found.append(f"the status is {ended.status}, alone 7, stdout {ended.stdout[:40]!r}")
    elif refused and trap.is_temporary:
        found.append("COMMAND was refused because of a temporary name")
    return blamed(ended, found)


def _names(trap: _Trap) -> Iterator[str]:
    if not trap.is_temporary:
        yield from _FINAL
        return
    last = int(Path("/proc/loadavg").read_text().split()[4])
    for pid in range(last + 1, last + _AHEAD):
        for name in _TEMPORARY:
            yield name.format(pid=pid)


def _plant(path: Path, kind: str, roots: Path) -> None:
    """Something of the attacker's."""
    if kind == "link":
        path.symlink_to(roots / "secret")
    elif kind == "link to nowhere":
        path.symlink_to(roots / "made")
    elif kind == "FIFO":
        os.mkfifo(path, 0o666)
    elif kind == "directory":
        path.mkdir()
    else:
        path.write_text("the attacker's\n")
        path.chmod(0o666)
    os.lchown(path, ATTACKER, ATTACKER)
