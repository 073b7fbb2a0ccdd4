"""Finds the trainings that run on this machine.

A program counts as a training if one of its processes uses a GPU or has a framework in memory, if
memdiag started it, or, of Python programs, if it is large: of another user's processes only the
size can be seen without being root.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from memdiag.capture.process.cgroup import PROC
from memdiag.values.measurements import RunningProgram

# Heuristic: editors, notebooks without work, and services are smaller.
LARGE_BYTES = 500_000_000
_FRAMEWORKS = re.compile(rb"/(?:libtorch|jaxlib|xla_|libtensorflow|libcupy|libmxnet|lib_lightgbm)")
_MOST_MAPS_BYTES = 8 << 20
_ASKED = ("ppid", "name", "cmdline", "username", "uids", "memory_info", "create_time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The first process of a training. began_s: when it started, to recognize a reused pid."""

    program: RunningProgram
    user: str
    began_s: float


@dataclass(slots=True)
class _Seen:
    parent: int
    facts: dict[str, Any]
    is_python: bool
    is_memdiag: bool
    is_server: bool  # runs programs of the user that have nothing to do with each other


class Finder:
    """Looks for trainings again and again; remembers where a framework was found."""

    def __init__(self, *, uid: int | None, proc: Path = PROC) -> None:
        """uid: only trainings of this user; None for all that can be seen."""
        self._uid, self._proc = uid, proc
        self._with_framework: set[tuple[int, float]] = set()

    def find(self, on_devices: Collection[int]) -> list[Training]:
        """The trainings that run now. on_devices: the pids that use a GPU."""
        seen = dict(self._processes())
        trains = {
            pid
            for pid, one in seen.items()
            if not one.is_memdiag and self._trains(pid, one, seen, on_devices)
        }
        roots = dict.fromkeys(_first(pid, trains, seen) for pid in trains)
        return [_training(pid, seen[pid]) for pid in roots]

    def _processes(self) -> Iterator[tuple[int, _Seen]]:
        for process in psutil.process_iter(_ASKED):
            facts = process.info
            if facts["uids"] is None or facts["memory_info"] is None:
                continue
            if self._uid is not None and facts["uids"].real != self._uid:
                continue
            words = facts["cmdline"] or []
            names = [Path(word).name for word in words[:3]]
            yield (
                process.pid,
                _Seen(
                    parent=facts["ppid"] or 0,
                    facts=facts,
                    is_python=any("python" in name for name in (facts["name"] or "", *names[:1])),
                    is_memdiag=(facts["name"] or "").startswith("memdiag") or "memdiag" in names,
                    is_server=any(name.startswith(("jupyter", "ray")) for name in names),
                ),
            )

    def _trains(
        self, pid: int, one: _Seen, seen: dict[int, _Seen], on_devices: Collection[int]
    ) -> bool:
        parent = seen.get(one.parent)
        if pid in on_devices or (parent is not None and parent.is_memdiag):
            return True
        is_large = one.facts["memory_info"].rss >= LARGE_BYTES
        return one.is_python and (is_large or self._has_framework(pid, one))

    def _has_framework(self, pid: int, one: _Seen) -> bool:
        identity = (pid, one.facts["create_time"])
        if identity in self._with_framework:
            return True
        try:
            with (self._proc / str(pid) / "maps").open("rb") as maps:
                found = _FRAMEWORKS.search(maps.read(_MOST_MAPS_BYTES)) is not None
        except OSError:  # another user's, or it has ended
            return False
        if found:
            self._with_framework.add(identity)
        return found


def _first(pid: int, trains: Collection[int], seen: Mapping[int, _Seen]) -> int:
    """The first process of a training: launchers that load the framework belong to it."""
    for _ in seen:
        parent = seen[pid].parent
        if parent not in trains or seen[parent].is_server:
            break
        pid = parent
    return pid


def _training(pid: int, one: _Seen) -> Training:
    facts = one.facts
    began_s = facts["create_time"] or 0.0
    return Training(
        program=RunningProgram(
            pid=pid,
            command=shlex.join(facts["cmdline"] or [facts["name"] or "?"]),
            rss_bytes=facts["memory_info"].rss,
            age_s=max(0.0, time.time() - began_s),
        ),
        user=facts["username"] or str(facts["uids"].real),
        began_s=began_s,
    )


def host_memory() -> tuple[int, int]:
    """Bytes of RAM that are used (not available), and all."""
    memory = psutil.virtual_memory()
    return memory.total - memory.available, memory.total


def uid_of(user: str) -> int | None:
    """The number of a user, given by name or number; None for an unknown name."""
    import pwd

    if user.isdecimal():
        return int(user)
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None
