"""JSON that is one document: lists of rows, columns of lists, and answers of Prometheus."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memdiag.errors import ReadError
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.tables.table import Table

_LARGEST_BYTES = 512 << 20
_NESTING = 4
_COLUMNS_AT_MOST = 5000
_LOOKED_AT = 1 << 12
# CloudWatch says beside the rows which metric they are of.
_TITLE = "Label"

Row = Mapping[str, Any]


def is_json(source: Source) -> bool:
    """Return True if the source begins like one JSON document, not JSON line by line."""
    start = source.content.lstrip()[:_LOOKED_AT]
    return start.startswith((b"{", b"[")) and not _is_lines(start)


def parsed(source: Source) -> Any:
    """The document, None if the source is not a JSON document."""
    if not is_json(source):
        return None
    raw = source.first_bytes(_LARGEST_BYTES + 1)
    if len(raw) > _LARGEST_BYTES:
        raise ReadError(
            f"a JSON document of more than {_LARGEST_BYTES >> 20} MiB is not read",
            source=source.name,
            remedy="write one JSON object per line",
        )
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _is_lines(start: bytes) -> bool:
    first, _, second = start.partition(b"\n")
    return first.rstrip().endswith(b"}") and second.lstrip().startswith(b"{")


def read_json(source: Source) -> Table | None:
    """A list of objects, alone or in an object (`log_history`), or an object of equal lists."""
    document = parsed(source)
    lists = [document] if isinstance(document, list) else []
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        if columns := _columns(document):
            return _table(columns)
    rows = max((rows for one in lists if len(rows := _rows(one)) > 1), key=len, default=None)
    if rows is None:
        return None
    title = document.get(_TITLE) if isinstance(document, dict) else None
    named = {_TITLE: [title] * len(rows)} if isinstance(title, str) else {}
    return _table({**named, **_by_column(rows)})


def _columns(document: Row) -> dict[str, list[Any]] | None:
    """`{"step": [0, 1], "rss_mb": [5, 6]}`; pandas writes `{"step": {"0": 0, "1": 1}}`."""
    found = {
        name: list(value.values()) if isinstance(value, dict) else value
        for name, value in document.items()
        if isinstance(value, (list, dict))
    }
    lengths = {len(value) for value in found.values()}
    scalars = all(_is_scalar(cell) for column in found.values() for cell in column)
    return found if len(found) > 1 and len(lengths) == 1 and lengths != {0} and scalars else None


def _is_scalar(cell: Any) -> bool:
    return cell is None or isinstance(cell, (str, int, float))


def _rows(rows: Sequence[Any]) -> list[Row]:
    """Its objects, flat; [] if it contains anything else."""
    if not all(isinstance(row, dict) for row in rows):
        return []
    return [dict(_flat(row, "", _NESTING)) for row in rows]


def _flat(row: Row, prefix: str, nesting: int) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict) and nesting:
            yield from _flat(value, f"{prefix}{name}.", nesting - 1)
        elif _is_scalar(value):
            yield f"{prefix}{name}", value


def _by_column(rows: Sequence[Row]) -> dict[str, list[Any]]:
    names = list(dict.fromkeys(name for row in rows for name in row))[:_COLUMNS_AT_MOST]
    return {name: [row.get(name) for row in rows] for name in names}


def _table(columns: Mapping[str, Sequence[Any]]) -> Table:
    return Table(
        names=tuple(columns), columns=tuple(map(_column, columns.values())), first_line=None
    )


def _column(cells: Sequence[Any]) -> pl.Series:
    """Cells as numbers if all are numbers, else as text."""
    if all(cell is None or isinstance(cell, (int, float)) for cell in cells):
        return pl.Series(
            [None if cell is None else _float(cell) for cell in cells], dtype=pl.Float64
        )
    return pl.Series([None if cell is None else str(cell) for cell in cells], dtype=pl.String)


def _float(number: float) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None
