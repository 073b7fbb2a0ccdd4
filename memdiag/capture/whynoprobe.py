"""Why the probe is not in a process: one sentence, and what to do about it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memdiag.capture.channel import find_ring
from memdiag.model import Unavailable
from memdiag.probe import layout
from memdiag.probe.arming import INJECTED

_ATTACH = "tag it from inside with `import memdiag.auto`, or go by what is seen from outside"
_FLAGS = {
    "I": "isolated mode",
    "E": "ignoring the environment",
    "S": "without the site module",
}
_FLAGS_WITH_ARGUMENT = "XW"
_OLDEST = (3, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """What is known of a process from outside.

    program: path of its executable. argv, environ: as at its start. libpython: path of a shared
    Python that it has mapped, "" if none.
    """

    program: str
    argv: Sequence[str]
    environ: Mapping[str, str]
    libpython: str
    uid: int


def why_no_probe(pid: int, directory: Path) -> Unavailable | None:
    """The reason why live process `pid` writes to no ring in the channel `directory`.

    None where it does, or is gone. Young processes may just not have come to it: ask when one
    has run for a second.
    """
    if find_ring(directory, pid) is not None:
        return None
    suspect = _look_at(pid)
    return None if suspect is None else explain(suspect, directory)


def explain(suspect: Suspect, directory: Path) -> Unavailable:
    """The reason for a process that is known to have no probe."""
    for look in _LOOKS:
        reason = look(suspect, directory)
        if reason is not None:
            return reason
    return Unavailable(
        reason="the probe did not start (an embedded Python without its site module, or a full "
        "disk)",
        remedy=_ATTACH,
    )


def _not_python(suspect: Suspect, _: Path) -> Unavailable | None:
    if suspect.libpython or _python_version(suspect.program) is not None:
        return None
    return Unavailable(
        reason=f"{Path(suspect.program).name} is no Python program",
        remedy="steps can be read from what it writes; memory is recorded from outside",
    )


def _too_old(suspect: Suspect, _: Path) -> Unavailable | None:
    version = _python_version(suspect.libpython) or _python_version(suspect.program)
    if not version or version >= _OLDEST:
        return None
    return Unavailable(
        reason=f"Python {version[0]}.{version[1]} is older than the probe supports",
        remedy="use Python 3.8 or newer",
    )


def _flags(suspect: Suspect, _: Path) -> Unavailable | None:
    flags = _isolating_flags(suspect.argv)
    if not flags:
        return None
    meaning = " and ".join(_FLAGS[flag] for flag in flags)
    text = " ".join(f"-{flag}" for flag in flags)
    return Unavailable(
        reason=f"Python was started with {text} ({meaning})",
        remedy=f"start it without {text}, or {_ATTACH}",
    )


def _other_user(suspect: Suspect, directory: Path) -> Unavailable | None:
    if suspect.uid in (0, directory.stat().st_uid):
        return None
    return Unavailable(
        reason=f"it runs as another user (uid {suspect.uid}), who may not write to the channel",
        remedy="run memdiag as that user",
    )


def _environment(suspect: Suspect, directory: Path) -> Unavailable | None:
    channel = suspect.environ.get(layout.DIRECTORY_VARIABLE)
    path = suspect.environ.get("PYTHONPATH", "")
    if channel is None and INJECTED not in path.split(os.pathsep):
        return Unavailable(
            reason="its parent started it with a cleared environment",
            remedy=f"pass PYTHONPATH and {layout.DIRECTORY_VARIABLE} on to it, or {_ATTACH}",
        )
    if channel is not None and Path(channel) != directory:
        return Unavailable(
            reason="it writes to the channel of another memdiag",
            remedy="run one memdiag at a time around it",
        )
    if INJECTED not in path.split(os.pathsep):
        return Unavailable(
            reason=f"PYTHONPATH was replaced by {path!r}" if path else "PYTHONPATH was removed",
            remedy="prepend to PYTHONPATH in place of setting it",
        )
    return None


def _shadowed(suspect: Suspect, _: Path) -> Unavailable | None:
    for entry in suspect.environ.get("PYTHONPATH", "").split(os.pathsep):
        if entry == INJECTED:
            return None
        other = Path(entry) / "sitecustomize.py"
        if entry and other.exists():
            return Unavailable(
                reason=f"{other} comes before the probe and does not go on to other sitecustomizes",
                remedy=f"start memdiag inside of what put it there, or {_ATTACH}",
            )
    return None


_Look = Callable[[Suspect, Path], Unavailable | None]
_LOOKS: tuple[_Look, ...] = (
    _not_python,
    _too_old,
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


def _look_at(pid: int) -> Suspect | None:
    root = Path(f"/proc/{pid}")
    try:
        return Suspect(
            program=str((root / "exe").readlink()),
            argv=_strings(root / "cmdline"),
            environ=dict(text.split("=", 1) for text in _strings(root / "environ") if "=" in text),
            libpython=_mapped_python(root / "maps"),
            uid=root.stat().st_uid,
        )
    except OSError:
        return None


def _strings(path: Path) -> list[str]:
    return os.fsdecode(path.read_bytes()).split("\0")[:-1]


def _mapped_python(maps: Path) -> str:
    found = re.search(r"(/\S*libpython\S*)", os.fsdecode(maps.read_bytes()))
    return found.group(1) if found else ""
