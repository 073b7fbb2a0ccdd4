"""Logs of one JSON object per line."""

from __future__ import annotations

import io

from memdiag.errors import UnreadableInput
from memdiag.recording.inputs.opening import HEAD_BYTES
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.tables.table import Table, without_lists
from memdiag.values.sanitize import printable

_NESTING = 4


def is_jsonl(source: Source) -> bool:
    """Return True if the first of several lines is an object, or the beginning of a very long one.

    An object alone is a JSON document.
    """
    first, _, others = source.content.lstrip().partition(b"\n")
    first = first.strip()
    is_object = first.startswith(b"{") and first.endswith(b"}") and b'"' in first
    return (is_object and bool(others.strip())) or _is_endless(source)


def read_jsonl(source: Source) -> Table:
    """The objects' members as columns, with nested names joined by dots."""
    if _is_endless(source):
        raise UnreadableInput(
            "its first object has thousands of members: too many to analyze at once",
            source=source.name,
            line=1,
            remedy="write only the step and the members that are memory",
        )
    raw = source.all_bytes()
    notes: tuple[str, ...] = ()
    if not raw.endswith(b"\n") and not raw.rstrip().endswith(b"}"):
        raw, notes = raw[: raw.rfind(b"\n") + 1], ("the last line is torn off and was left out",)
    try:
        frame = pl.read_ndjson(io.BytesIO(raw), infer_schema_length=None, ignore_errors=True)
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise UnreadableInput(
            f"its lines are not JSON objects: {printable(str(error))[:120]}",
            source=source.name,
            line=1,
            remedy="check that each line is one object",
        ) from error
    return Table.of(without_lists(_flat(frame)), first_line=1, notes=notes)


def _is_endless(source: Source) -> bool:
    """Return True if one flat object fills the whole head: thousands of members, which would slow
    down every reader of lines.
    """
    head = source.content.lstrip()[:HEAD_BYTES]
    is_long = not source.whole and len(head) > HEAD_BYTES // 2 and b"\n" not in head
    return is_long and head.startswith(b"{") and b"[" not in head and head.count(b"{") == 1


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    for _ in range(_NESTING):
        nested = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Struct)]
        if not nested:
            break
        for name in nested:
            inner = frame[name].struct.unnest()
            inner = inner.rename({old: f"{name}.{old}" for old in inner.columns})
            taken = set(frame.columns)
            inner = inner.select([column for column in inner.columns if column not in taken])
            frame = frame.drop(name).hstack(inner)
    return frame
