"""The control groups that limit a process's memory, version 2 and 1 (cgroups(7), and the kernel's
cgroup-v2.rst and cgroup-v1/memory.rst)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
# Version 1 reports "no limit" as the largest multiple of a page in 64 bits.
_NO_LIMIT = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryGroup:
    """The group that a process's memory is charged to.

    levels: directories from the process's own group outwards to the outermost visible one.
    version: 2 or 1.
    """

    levels: tuple[Path, ...]
    version: int

    @property
    def limit_file(self) -> str:
        """The file with a level's hard limit."""
        return "memory.max" if self.version == 2 else "memory.limit_in_bytes"

    def limit(self) -> tuple[int, Path] | None:
        """The lowest hard limit of all levels in bytes, and its level."""
        limits = [
            (value, level)
            for level in self.levels
            if (value := _number(level / self.limit_file)) is not None and value < _NO_LIMIT
        ]
        return min(limits, key=lambda found: found[0], default=None)

    def used_bytes(self, level: Path) -> int | None:
        """The memory charged to a level now, including page cache."""
        name = "memory.current" if self.version == 2 else "memory.usage_in_bytes"
        return _number(level / name)

    def anonymous_bytes(self) -> int | None:
        """The anonymous memory charged to the group and those below it; None if unknown."""
        name = "anon" if self.version == 2 else "total_rss"
        return _counter(self.levels[0] / "memory.stat", name)

    def oom_kills(self) -> int | None:
        """How many processes of the group the OOM killer has killed; None if unknown."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        return _counter(self.levels[0] / name, "oom_kill")


@dataclass(frozen=True, slots=True, kw_only=True)
class OomCounters:
    """The kernel's counts of OOM-killed processes; None if unknown."""

    group: int | None
    machine: int | None


def oom_counters(group: MemoryGroup | None, *, proc: Path = PROC) -> OomCounters:
    """The counts now. Read them when the group is first seen, and after the target has ended."""
    return OomCounters(
        group=None if group is None else group.oom_kills(),
        machine=_counter(proc / "vmstat", "oom_kill"),
    )


def memory_group(pid: int, *, proc: Path = PROC) -> MemoryGroup | None:
    """The memory group of a process; None if there is none, or it is not visible.

    A machine with both versions has the memory controller in one of them: version 1 if it is
    mounted there, because version 2 then has no memory files.
    """
    paths = _paths(_text(proc / str(pid) / "cgroup"))
    mounts = _mounts(_text(proc / "self" / "mountinfo"))
    for version, name in ((1, "memory"), (2, "")):
        if name in paths and version in mounts:
            root, mount = mounts[version]
            levels = _levels(paths[name], root, mount)
            return MemoryGroup(levels=levels, version=version)
    return None


def _counter(path: Path, name: str) -> int | None:
    """The number after `name` in a file of `name number` lines."""
    for line in _text(path).splitlines():
        word, _, number = line.partition(" ")
        if word == name and number.strip().isdigit():
            return int(number)
    return None


def _levels(path: str, root: str, mount: Path) -> tuple[Path, ...]:
    """Directories from the group outwards.

    root: the group that is mounted. Inside a container the path may be outside of it ("/.." in a
    cgroup namespace of its own, or the host's path): then the mount itself is the group.
    """
    inside = path if root == "/" else path.removeprefix(root)
    group = mount / inside.strip("/")
    if ".." in path.split("/") or not group.is_dir():
        group = mount
    levels = [group]
    while levels[-1] != mount and mount in levels[-1].parents:
        levels.append(levels[-1].parent)
    return tuple(levels)


def _paths(text: str) -> dict[str, str]:
    """Controller -> path, from /proc/PID/cgroup; version 2 has the name ""."""
    found = {}
    for line in text.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for name in controllers.split(","):
            found[name] = path
    return found


def _mounts(text: str) -> dict[int, tuple[str, Path]]:
    """Version -> (mounted group, mount point), from mountinfo (proc_pid_mountinfo(5))."""
    found: dict[int, tuple[str, Path]] = {}
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or not kind:
            continue
        where = (_unescaped(fields[3]), Path(_unescaped(fields[4])))
        if kind[0] == "cgroup2":
            found.setdefault(2, where)
        elif kind[0] == "cgroup" and "memory" in kind[-1].split(","):
            found.setdefault(1, where)
    return found


def _unescaped(field: str) -> str:
    r"""Blanks are written `\040` in mountinfo."""
    return field.encode("latin-1", "replace").decode("unicode_escape") if "\\" in field else field


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - half of the cost
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
