"""Files of one user that another one would like to see changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Facts = tuple[int, int, int, int, int, bytes]


def plant(place: Path) -> Path:
    """Make a directory of the current user's with files of several modes."""
    roots = place / "roots"
    (roots / "directory" / "below").mkdir(parents=True)
    for name, mode in (("secret", 0o600), ("program", 0o700), ("directory/inner", 0o600)):
        (roots / name).write_text(f"{name} of the user's\n" * 3)
        (roots / name).chmod(mode)
    (roots / "directory" / "below" / "file").write_text("below\n")
    for path in (roots / "directory", roots / "directory" / "below"):
        path.chmod(0o700)
    return roots


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What was below a directory at some moment: mode, owner, time, number and content."""

    directory: Path
    facts: dict[str, Facts]

    def changes(self) -> list[str]:
        """What is different now, one sentence each."""
        now = watched(self.directory).facts
        return [
            _change(name, self.facts.get(name), now.get(name))
            for name in sorted({*self.facts, *now})
            if self.facts.get(name) != now.get(name)
        ]


def watched(directory: Path) -> Watched:
    """What is below the directory now."""
    return Watched(directory=directory, facts=dict(_facts_below(directory)))


def made_by_root(loot: Path) -> list[str]:
    """What was run with root's rights: files of root's where only an attacker writes."""
    return [
        f"root ran what the attacker wrote: {path.name} belongs to root"
        for path in sorted(loot.iterdir())
        if path.lstat().st_uid == 0
    ]


def _facts_below(directory: Path) -> Iterator[tuple[str, Facts]]:
    for path in (directory, *sorted(directory.rglob("*"))):
        found = path.lstat()
        content = b""
        if stat.S_ISREG(found.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(found.st_mode):
            content = os.fsencode(path.readlink())
        # What changes a directory's time is listed by itself.
        time_ns = 0 if stat.S_ISDIR(found.st_mode) else found.st_mtime_ns
        facts = (found.st_mode, found.st_uid, found.st_gid, time_ns, found.st_ino)
        yield str(path.relative_to(directory)), (*facts, content)


def _change(name: str, before: Facts | None, after: Facts | None) -> str:
    if before is None:
        return f"{name} was made"
    if after is None:
        return f"{name} was removed"
    words = ("mode", "owner", "group", "time", "inode", "content")
    pairs = zip(words, before, after, strict=True)
    changed = [f"{word} {_short(a)} -> {_short(b)}" for word, a, b in pairs if a != b]
    return f"{name} was changed: {', '.join(changed)}"


def _short(value: object) -> str:
    return oct(value) if isinstance(value, int) and value < 1 << 17 else repr(value)[:60]
