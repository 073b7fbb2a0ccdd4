"""The recordings that the arguments of a command name, one after the other.

A hundred thousand names are never in memory together, except those of one directory.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from memdiag.errors import ReadError
from memdiag.fleet.judge_file import is_url, store
from memdiag.recording.read import expand

LIST = "@"
_MAGIC = "*?["


def paths(arguments: Iterable[str], storage: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Every recording once: files, directories, patterns, `@list.txt` with one of these a line, and
    URLs with or without a pattern. storage: options of fsspec.

    Raises ReadError for what cannot be listed. A name without a file stays, so that it has a result
    with the reason.
    """
    seen: set[int] = set()  # 64 bits of each name: two of 1e7 names are equal with p = 3e-6
    for path in _all(arguments, storage or {}):
        mark = hash(path)
        if mark not in seen:
            seen.add(mark)
            yield path


def _all(arguments: Iterable[str], storage: Mapping[str, Any]) -> Iterator[str]:
    for argument in arguments:
        if argument.startswith(LIST) and not os.path.lexists(argument):
            yield from _all(_lines(argument[len(LIST) :]), storage)
        elif is_url(argument):
            yield from _of_url(argument, storage)
        elif any(one in argument for one in _MAGIC) and not os.path.lexists(argument):
            yield from _matching(argument)
        else:
            yield from expand([argument])


def _lines(path: str) -> Iterator[str]:
    """The names in a list; blank lines and comments are left out, lists in lists are not read."""
    try:
        with Path(path).open(encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                name = line.rstrip("\r\n")
                if name.strip() and not name.startswith(("#", LIST)):
                    yield name
    except OSError as error:
        raise ReadError(
            f"the list cannot be read: {error.strerror}",
            source=path,
            remedy="@FILE names a list with one recording a line",
        ) from error


def _matching(pattern: str) -> Iterator[str]:
    found = False
    for name in glob.iglob(pattern, recursive=True):  # noqa: PTH207 - absolute patterns
        if os.path.isfile(name):  # noqa: PTH113
            found = True
            if not name.endswith(".meta.json"):
                yield name
    if not found:
        yield from expand([pattern])


def _of_url(url: str, storage: Mapping[str, Any]) -> Iterator[str]:
    if not any(one in url.partition("://")[2].partition("?")[0] for one in "*["):
        yield url
        return
    try:
        system, pattern = store(url, storage)
        names = [str(name) for name in system.glob(pattern)]
    except ReadError:
        raise
    except Exception as error:  # each store has its own
        text = str(error) or type(error).__name__
        raise ReadError(f"it cannot be listed: {text}", source=url) from error
    kept = [name for name in names if not name.endswith(".meta.json")]
    if not kept:
        raise ReadError("no object matches this pattern", source=url)
    for name in kept:
        yield system.unstrip_protocol(name)
