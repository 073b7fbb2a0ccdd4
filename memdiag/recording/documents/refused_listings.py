"""Listings of profilers: memory by line of code, type or site, at one moment."""

from __future__ import annotations

import re
from typing import NoReturn

from memdiag.errors import ReadError
from memdiag.recording.inputs.source import Source

_LOST = "definitely lost"  # of valgrind, whose summaries may come again: then they are a series
_SUMMARIES_AT_LEAST = 4
# A text in the listing, the pattern of its rows, and what to record instead.
_LISTINGS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    (
        "Mem usage    Increment",
        re.compile(r"\s*[0-9]+(?:\s+[0-9.]+ MiB\s+-?[0-9.]+ MiB.*|\s{4,}\S.*|\s*)"),
        "record the process over time: mprof run python train.py, and then its .dat file",
    ),
    (
        ": size=",
        re.compile(r".*:[0-9]+: size=[0-9.]+ [KMGT]?i?B\b.* count=[0-9]+.*"),
        "print tracemalloc.get_traced_memory() every few steps",
    ),
    (
        "# objects",
        re.compile(r"\s*\S.*\|\s+[0-9]+ \|\s+[0-9.]+ +[KMGT]?B\s*"),
        "print the resident memory every few steps, or: memdiag run -- python train.py",
    ),
    (
        "Type: alloc_space",
        re.compile(r"Showing nodes .*|\s*[0-9.]+[kMGT]?B\s+[0-9.]+%.*"),
        "take what is in use, again and again: go tool pprof -inuse_space -top",
    ),
    (
        _LOST,
        re.compile(r"==[0-9]+==\s+(?:[a-z]+ (?:lost|reachable)|suppressed): [0-9,]+ bytes.*"),
        "what valgrind reports as definitely lost is a leak; for growth: memdiag run -- ./program",
    ),
)
_ROWS_AT_LEAST = 3
_MOSTLY = 0.5


def listing_remedy(source: Source) -> str:
    """What to record instead if most lines with numbers are rows of a listing, else ""."""
    head = source.head()
    lines = [line for line in head.split("\n") if re.search("[0-9]", line)]
    for sign, row, remedy in _LISTINGS:
        if sign == _LOST and head.count(sign) >= _SUMMARIES_AT_LEAST:
            continue
        count = sum(row.fullmatch(line) is not None for line in lines) if sign in head else 0
        if count >= _ROWS_AT_LEAST and count > _MOSTLY * len(lines):
            return remedy
    return ""


def refuse_listing(source: Source) -> NoReturn:
    """Raise ReadError for a listing."""
    raise ReadError(
        "it lists what holds memory at one moment, not memory over time",
        source=source.name,
        remedy=listing_remedy(source),
    )
