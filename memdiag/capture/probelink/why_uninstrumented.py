"""Finds out why the probe is not in a process: one sentence, and a remedy."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memdiag.probe import ring_format
from memdiag.probe.arm import INJECTED
from memdiag.values.measurements import Unavailable

_ATTACH = (
    "put `import memdiag.auto` into it, or use `memdiag watch --pid PID --attach` once it runs"
)
_OUTSIDE = (
    "its memory is recorded from outside; `--step-regex` takes steps from what it prints, "
    "`--tags-from` from its log"
)
_FLAGS = {
    "I": "isolated mode",
    "E": "ignoring the environment",
    "S": "without the site module",
}
_FLAGS_WITH_ARGUMENT = "XW"
_OLDEST = (3, 8)
_OTHER_PYTHON = re.compile(r"(pypy|graalpy|ironpython|jython|micropython)", re.IGNORECASE)
_CONCERNED = (ring_format.DIRECTORY_VARIABLE, "PYTHONPATH")


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFacts:
    """How a process was started, as seen from outside.

    program: path of its executable, "" if unreadable. argv: at its start. environ: the variables
    at its start that matter for the probe. libpython: path of a shared Python library that it has
    mapped, "" if none.
    """

    program: str
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    libpython: str
    uid: int

    @property
    def is_python(self) -> bool:
        """Return True if it runs any kind of Python."""
        named = _python_version(self.program) is not None or _OTHER_PYTHON.match(
            Path(self.program).name
        )
        return bool(self.libpython or named)


def read_start_facts(pid: int) -> StartFacts | None:
    """How process `pid` was started; None if it has ended."""
    root = Path(f"/proc/{pid}")
    uid = -1
    argv: tuple[str, ...] = ()
    try:
        uid = root.stat().st_uid
        argv = tuple(_strings(root / "cmdline"))
        program = str((root / "exe").readlink())
        environ = dict(text.split("=", 1) for text in _strings(root / "environ") if "=" in text)
        named = _python_version(program) is not None
        libpython = "" if named else _mapped_python(root / "maps")
    except PermissionError:
        return StartFacts(program="", argv=argv, environ={}, libpython="", uid=uid)
    except OSError:
        return None
    return StartFacts(
        program=program,
        argv=argv,
        environ={name: environ[name] for name in _CONCERNED if name in environ},
        libpython=libpython,
        uid=uid,
    )


DID_NOT_START = Unavailable(
    reason="the probe did not start (an embedded Python without its site module, or a full disk)",
    remedy=_ATTACH,
)


def explain(process: StartFacts, directory: Path | None) -> Unavailable:
    """The reason for a process that is known to have no probe.

    directory: the channel that it should write to; None if it was not started for one.
    """
    return (
        _unreadable(process)
        or _not_python(process)
        or _too_old(process)
        or _not_prepared(directory)
        or _flags(process)
        or _other_user(process, directory)
        or _environment(process, directory)
        or _shadowed(process)
        or DID_NOT_START
    )


def unfit(process: StartFacts) -> Unavailable | None:
    """Why the probe can never be in this process; None if it could be, or if unknown."""
    if not process.program:
        return None
    return _not_python(process) or _too_old(process)


def version_of(process: StartFacts) -> tuple[int, int] | None:
    """The version of its Python, such as (3, 11), if its file names contain it."""
    found = _python_version(process.libpython) or _python_version(process.program)
    return (found[0], found[1]) if found else None


def _unreadable(process: StartFacts) -> Unavailable | None:
    if process.program:
        return None
    return Unavailable(
        reason=f"it runs as another user (uid {process.uid}) or protects itself, and memdiag may "
        "not inspect it",
        remedy="run memdiag as that user, or as root",
    )


def _not_python(process: StartFacts) -> Unavailable | None:
    name = Path(process.program).name
    if _OTHER_PYTHON.match(name):
        return Unavailable(reason=f"{name} is not CPython, which the probe needs", remedy=_OUTSIDE)
    if process.is_python:
        return None
    return Unavailable(reason=f"{name} is not a Python program", remedy=_OUTSIDE)


def _too_old(process: StartFacts) -> Unavailable | None:
    version = version_of(process)
    if not version or version >= _OLDEST:
        return None
    return Unavailable(
        reason=f"Python {version[0]}.{version[1]} is older than the probe supports",
        remedy="use Python 3.8 or newer",
    )


def _not_prepared(directory: Path | None) -> Unavailable | None:
    if directory is not None:
        return None
    return Unavailable(
        reason="it was not started under memdiag",
        remedy="attach the probe with --attach, or start it with `memdiag run`",
    )


def _flags(process: StartFacts) -> Unavailable | None:
    flags = _isolating_flags(process.argv)
    if not flags:
        return None
    meaning = " and ".join(_FLAGS[flag] for flag in flags)
    text = " ".join(f"-{flag}" for flag in flags)
    return Unavailable(
        reason=f"Python was started with {text} ({meaning})",
        remedy=f"start it without {text}, or {_ATTACH}",
    )


def _other_user(process: StartFacts, directory: Path | None) -> Unavailable | None:
    if directory is None or process.uid in (0, directory.stat().st_uid):
        return None
    return Unavailable(
        reason=f"it runs as another user (uid {process.uid}), who may not write to the channel",
        remedy="run memdiag as that user",
    )


def _environment(process: StartFacts, directory: Path | None) -> Unavailable | None:
    channel = process.environ.get(ring_format.DIRECTORY_VARIABLE)
    path = process.environ.get("PYTHONPATH", "")
    has_probe = INJECTED in path.split(os.pathsep)
    if channel is None and not has_probe:
        return Unavailable(
            reason="its parent started it with a cleared environment",
            remedy=f"pass PYTHONPATH and {ring_format.DIRECTORY_VARIABLE} on to it, or {_ATTACH}",
        )
    if channel is not None and Path(channel) != directory:
        return Unavailable(
            reason="it writes to the channel of another memdiag",
            remedy="run only one memdiag around it at a time",
        )
    if not has_probe:
        return Unavailable(
            reason=f"PYTHONPATH was replaced by {path!r}" if path else "PYTHONPATH was removed",
            remedy=f"prepend to PYTHONPATH instead of setting it, or {_ATTACH}",
        )
    return None


def _shadowed(process: StartFacts) -> Unavailable | None:
    for entry in process.environ.get("PYTHONPATH", "").split(os.pathsep):
        if entry == INJECTED:
            return None
        for name in ("sitecustomize.py", "sitecustomize/__init__.py"):
            other = Path(entry, name)
            if entry and other.exists():
                return Unavailable(
                    reason=f"{other} comes before the probe and does not import the next "
                    "sitecustomize",
                    remedy=f"start memdiag inside of what put it there, or {_ATTACH}",
                )
    return None


def _isolating_flags(argv: Sequence[str]) -> list[str]:
    """The flags -I, -E and -S in the interpreter's own arguments."""
    found: list[str] = []
    rest = iter(argv[1:])
    for argument in rest:
        if not argument.startswith("-") or argument in ("-", "--"):
            break
        if argument.startswith("--"):
            continue
        for position, flag in enumerate(argument[1:], 1):
            if flag in "cm":
                return found
            if flag in _FLAGS and flag not in found:
                found.append(flag)
            if flag in _FLAGS_WITH_ARGUMENT:
                if position == len(argument) - 1:
                    next(rest, None)
                break
    return found


def _python_version(path: str) -> tuple[int, ...] | None:
    """(3, 11) from `/usr/bin/python3.11`; () if it is Python without a version in its name."""
    match = re.match(r"(?:lib)?python(?:(\d)\.(\d+))?", Path(path).name, re.IGNORECASE)
    if match is None:
        return None
    return tuple(int(part) for part in match.groups() if part is not None)


def _strings(path: Path) -> list[str]:
    return os.fsdecode(path.read_bytes()).split("\0")[:-1]


def _mapped_python(maps: Path) -> str:
    found = re.search(r"(/\S*libpython\S*)", os.fsdecode(maps.read_bytes()))
    return found.group(1) if found else ""
