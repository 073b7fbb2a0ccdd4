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


def read_jsonl(source: Source) -> Table | None:
    """The objects' members as columns, nested ones joined by dots. None if it is no such log."""
    _refuse_endless_object(source)
    head = source.content.lstrip()[:1]
    first = source.content.lstrip().split(b"\n", 1)[0].strip()
    if head != b"{" or not first.endswith(b"}") or b'"' not in first:
        return None
    raw = source.all_bytes()
    notes: tuple[str, ...] = ()
    if not raw.endswith(b"\n") and not raw.rstrip().endswith(b"}"):
        raw, notes = raw[: raw.rfind(b"\n") + 1], ("the last line is torn off and was left out",)
    try:
        frame = pl.read_ndjson(io.BytesIO(raw), infer_schema_length=None, ignore_errors=True)
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise UnreadableInput(
            f"its lines are no JSON objects: {printable(str(error))[:120]}",
            source=source.name,
            line=1,
            remedy="check that each line is one object",
        ) from error
    frame = without_lists(_flat(frame))
    return Table(
        names=tuple(frame.columns), columns=tuple(frame.get_columns()), first_line=1, notes=notes
    )


def _refuse_endless_object(source: Source) -> None:
    """Raise UnreadableInput for a flat object that fills the whole head: thousands of members,
    which every reader of lines would look through again and again.
    """
    head = source.content.lstrip()[:HEAD_BYTES]
    is_long = not source.whole and len(head) > HEAD_BYTES // 2 and b"\n" not in head
    if is_long and head.startswith(b"{") and b"[" not in head and head.count(b"{") == 1:
        raise UnreadableInput(
            "its first object has thousands of members: too many to be judged at once",
            source=source.name,
            line=1,
            remedy="write the step and the members that are memory alone",
        )


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
