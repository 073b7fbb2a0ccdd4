"""Boxes of names and values, printed again and again: `| rss_mb | 812 |`."""

from __future__ import annotations

import re
from collections import Counter

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.table import Table

_PAIR = re.compile(r"\s*\|\s*([A-Za-z_][^|]*?)\s*\|\s*([^|]*?)\s*\|\s*")
_BOXES_AT_LEAST = 2


def has_boxes(source: Source) -> bool:
    """Return True if several boxes in the head have a name of memory."""
    pairs = (_PAIR.fullmatch(line) for line in source.head().split("\n"))
    names = Counter(pair[1] for pair in pairs if pair is not None and pair[2])
    return any(
        often >= _BOXES_AT_LEAST and recognise(name).part is Part.METRIC
        for name, often in names.items()
    )


def read_boxes(source: Source) -> Table:
    """One row per box, which ends where one of its names comes again."""
    rows: list[dict[str, str]] = [{}]
    for line in source.all_bytes().decode("utf-8", errors="replace").split("\n"):
        pair = _PAIR.fullmatch(line)
        if pair is None or not pair[2]:
            continue
        if pair[1] in rows[-1]:
            rows.append({})
        rows[-1][pair[1]] = pair[2]
    return Table.of(pl.DataFrame(rows, infer_schema_length=None))
