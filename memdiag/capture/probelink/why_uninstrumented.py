"""Why the probe is not in a process: one sentence, and what to do about it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
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
class Suspect:
    """What is known of a process from outside.

    program: path of its executable, "" where the system does not tell us. argv: as at its start.
    environ: of the environment at its start what concerns the probe. libpython: path of a shared
    Python that it has mapped, "" if none.
    """

    program: str
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    libpython: str
    uid: int

    @property
    def is_python(self) -> bool:
        """It runs Python, whichever."""
        named = _python_version(self.program) is not None or _OTHER_PYTHON.match(
            Path(self.program).name
        )
        return bool(self.libpython or named)


def look_at(pid: int) -> Suspect | None:
    """What can be seen of process `pid`; None where it is gone."""
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
        return Suspect(program="", argv=argv, environ={}, libpython="", uid=uid)
    except OSError:
        return None
    return Suspect(
        program=program,
        argv=argv,
        environ={name: environ[name] for name in _CONCERNED if name in environ},
        libpython=libpython,
        uid=uid,
    )


def explain(suspect: Suspect, directory: Path | None) -> Unavailable:
    """The reason for a process that is known to have no probe.

    directory: the channel that it was to write to; None where it was not started for any.
    """
    for look in _LOOKS:
        reason = look(suspect, directory)
        if reason is not None:
            return reason
    return DID_NOT_START


def unfit(suspect: Suspect) -> Unavailable | None:
    """Why no probe can ever be in this process; None where it could, or we cannot tell."""
    if not suspect.program:
        return None
    return _not_python(suspect, None) or _too_old(suspect, None)


def version_of(suspect: Suspect) -> tuple[int, int] | None:
    """(3, 11) where the names of what it runs tell the version of its Python."""
    found = _python_version(suspect.libpython) or _python_version(suspect.program)
    return (found[0], found[1]) if found else None


DID_NOT_START = Unavailable(
    reason="the probe did not start (an embedded Python without its site module, or a full disk)",
    remedy=_ATTACH,
)


def _hidden(suspect: Suspect, _: Path | None) -> Unavailable | None:
    if suspect.program:
        return None
    return Unavailable(
        reason=f"it runs as another user (uid {suspect.uid}) or protects itself, and memdiag may "
        "not look at it",
        remedy="run memdiag as that user, or as root",
    )


def _not_python(suspect: Suspect, _: Path | None) -> Unavailable | None:
    name = Path(suspect.program).name
    if _OTHER_PYTHON.match(name):
        return Unavailable(reason=f"{name} is not CPython, which the probe needs", remedy=_OUTSIDE)
    if suspect.is_python:
        return None
    return Unavailable(reason=f"{name} is no Python program", remedy=_OUTSIDE)


def _too_old(suspect: Suspect, _: Path | None) -> Unavailable | None:
    version = version_of(suspect)
    if not version or version >= _OLDEST:
        return None
    return Unavailable(
        reason=f"Python {version[0]}.{version[1]} is older than the probe supports",
        remedy="use Python 3.8 or newer",
    )


def _flags(suspect: Suspect, _: Path | None) -> Unavailable | None:
    flags = _isolating_flags(suspect.argv)
    if not flags:
        return None
    meaning = " and ".join(_FLAGS[flag] for flag in flags)
    text = " ".join(f"-{flag}" for flag in flags)
    return Unavailable(
        reason=f"Python was started with {text} ({meaning})",
        remedy=f"start it without {text}, or {_ATTACH}",
    )


def _other_user(suspect: Suspect, directory: Path | None) -> Unavailable | None:
    if directory is None or suspect.uid in (0, directory.stat().st_uid):
        return None
    return Unavailable(
        reason=f"it runs as another user (uid {suspect.uid}), who may not write to the channel",
        remedy="run memdiag as that user",
    )


def _unprepared(_: Suspect, directory: Path | None) -> Unavailable | None:
    if directory is not None:
        return None
    return Unavailable(
        reason="it was not started under memdiag",
        remedy="let the probe in with --attach, or start it with `memdiag run`",
    )


def _environment(suspect: Suspect, directory: Path | None) -> Unavailable | None:
    channel = suspect.environ.get(ring_format.DIRECTORY_VARIABLE)
    path = suspect.environ.get("PYTHONPATH", "")
    if channel is None and INJECTED not in path.split(os.pathsep):
        return Unavailable(
            reason="its parent started it with a cleared environment",
            remedy=f"pass PYTHONPATH and {ring_format.DIRECTORY_VARIABLE} on to it, or {_ATTACH}",
        )
    if channel is not None and Path(channel) != directory:
        return Unavailable(
            reason="it writes to the channel of another memdiag",
            remedy="run one memdiag at a time around it",
        )
    if INJECTED not in path.split(os.pathsep):
        return Unavailable(
            reason=f"PYTHONPATH was replaced by {path!r}" if path else "PYTHONPATH was removed",
            remedy=f"prepend to PYTHONPATH instead of setting it, or {_ATTACH}",
        )
    return None


def _shadowed(suspect: Suspect, _: Path | None) -> Unavailable | None:
    for entry in suspect.environ.get("PYTHONPATH", "").split(os.pathsep):
        if entry == INJECTED:
            return None
        other = _sitecustomize(entry)
        if other is not None:
            return Unavailable(
                reason=f"{other} comes before the probe and does not go on to other sitecustomizes",
                remedy=f"start memdiag inside of what put it there, or {_ATTACH}",
            )
    return None


def _sitecustomize(entry: str) -> Path | None:
    """The sitecustomize that Python finds in this entry of its path."""
    for name in ("sitecustomize.py", "sitecustomize/__init__.py"):
        if entry and (Path(entry) / name).exists():
            return Path(entry) / name
    return None


_Look = Callable[[Suspect, Path | None], Unavailable | None]
_LOOKS: tuple[_Look, ...] = (
    _hidden,
    _not_python,
    _too_old,
    _unprepared,
    _flags,
    _other_user,
    _environment,
    _shadowed,
)


def _isolating_flags(argv: Sequence[str]) -> list[str]:
    """Those of -I, -E and -S that the interpreter itself was given."""
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
    """(3, 11) from `/usr/bin/python3.11`; () where it is Python but does not say which."""
    match = re.match(r"(?:lib)?python(?:(\d)\.(\d+))?", Path(path).name, re.IGNORECASE)
    if match is None:
        return None
    return tuple(int(part) for part in match.groups() if part is not None)


def _strings(path: Path) -> list[str]:
    return os.fsdecode(path.read_bytes()).split("\0")[:-1]


def _mapped_python(maps: Path) -> str:
    found = re.search(r"(/\S*libpython\S*)", os.fsdecode(maps.read_bytes()))
    return found.group(1) if found else ""
