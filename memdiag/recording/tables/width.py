"""Limits for the number of columns: a table may have a hundred thousand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from memdiag.errors import ReadError
from memdiag.recording.parsing.column_meaning import Meaning, Part

# Each memory column is analyzed by itself and with all others: 2000 of 20 rows take four seconds
# (measured on 2 cores), ten times as many several minutes. None is left out, since it might be the
# one that grows. One axis is used, and labels are joined to one: chosen.
_MOST = {
    Part.METRIC: (2000, "memory or counts", "choose columns: --metric NAME, once for each"),
    Part.AXIS: (200, "steps or times", "leave some of them out"),
    Part.LABEL: (50, "names of processes", "leave some of them out"),
}


def not_too_wide(
    meanings: Iterable[Meaning], source: str, line: int | None, *, chosen: bool = False
) -> list[Meaning]:
    """The meanings. Raises ReadError if too many columns have one part.

    chosen: the user chose the columns that are metrics.
    """
    found = []
    seen: Counter[Part] = Counter()
    for meaning in meanings:
        found.append(meaning)
        part = meaning.part
        seen[part] += 1
        if part not in _MOST or (chosen and part is Part.METRIC):
            continue
        most, what, remedy = _MOST[part]
        if seen[part] > most:
            raise ReadError(
                f"more than {most:,} of its columns look like {what}: too many to analyze at once",
                source=source,
                line=line,
                remedy=remedy,
            )
    return found
