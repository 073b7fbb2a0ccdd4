"""Logs of one JSON object per line."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from memdiag.errors import ReadError
from memdiag.recording.inputs.opening import HEAD_BYTES
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.cells import EPOCH_SCALES
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.table import Table, without_lists
from memdiag.values.measurements import AxisKind

_SEPARATOR = b"\x1e"  # of JSON text sequences, before each object
_BLANKS = b" \t\r\n" + _SEPARATOR
_NESTING = 4
# Of devices, containers or pods in a list.
_PARTS_AT_MOST = 64
_PART = "instance"
_NAMES = (("name",), ("metadata", "name"), ("id",), ("uuid",), ("index",), ("pid",))
Path = tuple[str, ...]
_ID = re.compile(r"(?=[^0-9]*[0-9])[\w-]{6,64}")
# Log messages: a share of them have a number and a word or unit of memory. Heuristic.
_OF_MEMORY = r"(?i)[0-9].*(?:mem|rss|ram\b|[0-9] ?[KMGT]i?B\b)|(?:mem|rss|ram\b).*[0-9]"
_OF_MEMORY_AT_LEAST = 0.05


def is_jsonl(source: Source) -> bool:
    """Return True if the first of several lines is an object, or the beginning of a very long one.

    An object alone is a JSON document.
    """
    first, _, others = source.content.lstrip(_BLANKS).partition(b"\n")
    first = first.strip()
    is_object = first.startswith(b"{") and first.endswith(b"}") and b'"' in first
    return (is_object and bool(others.strip())) or _is_endless(source)


def read_jsonl(source: Source) -> Table | None:
    """The objects' members as columns, with nested names joined by dots; None if most lines are
    something else.
    """
    if _is_endless(source):
        raise ReadError(
            "its first object has thousands of members: too many to analyze at once",
            source=source.name,
            line=1,
            remedy="write only the step and the members that are memory",
        )
    raw = source.all_bytes().replace(_SEPARATOR, b"")
    notes: tuple[str, ...] = ()
    first_line: int | None = 1
    if not raw.endswith(b"\n") and not raw.rstrip().endswith(b"}"):
        raw, notes = raw[: raw.rfind(b"\n") + 1], ("the last line is torn off and was left out",)
    if (frame := _frame(raw)) is None:
        objects, others = _objects(raw)
        if len(objects) < len(others):
            return None
        if (frame := _frame("\n".join(objects).encode())) is None:
            raise ReadError(
                "its lines are not JSON objects of the same kind",
                source=source.name,
                line=1,
                remedy="check that members of one name hold values of one type",
            )
        first_line = None
        notes += _left_out(others)
    frame = _without_id_above(_flat(frame))
    return Table.of(without_lists(frame), first_line=first_line, notes=notes)


def _frame(raw: bytes) -> pl.DataFrame | None:
    """The objects as rows, None if a line cannot be read."""
    try:
        return pl.read_ndjson(io.BytesIO(raw), infer_schema_length=None, ignore_errors=True)
    except (pl.exceptions.PolarsError, ValueError):
        return None


def _objects(raw: bytes) -> tuple[list[str], list[int]]:
    """The lines that are objects, without numbers that JSON does not know, and which lines hold
    something else.
    """
    objects, others = [], []
    for at, line in enumerate(raw.decode("utf-8", errors="replace").split("\n"), 1):
        try:
            found = json.loads(line, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            objects.append(json.dumps(found))
        elif line.strip():
            others.append(at)
    return objects, others


def _left_out(lines: list[int]) -> tuple[str, ...]:
    """A note about lines that are not objects, () if there are none."""
    if not lines:
        return ()
    number = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
    return (f"no JSON objects, and left out: {number}, the first is line {lines[0]}",)


def log_in(table: Table) -> bytes | None:
    """The lines of a log that collectors wrap into objects (`{"time": ..., "message": "step 1 rss
    812 MB"}`), each with its time in front; None if members of the objects are memory themselves.
    """
    if any(recognise(name).part is Part.METRIC for name in table.names):
        return None
    texts = [column for column in table.series if column.dtype == pl.String]
    shares = [column.str.contains(_OF_MEMORY).fill_null(value=False).mean() for column in texts]
    share, best = max(zip(shares, range(len(texts)), strict=True), default=(0.0, 0))
    if not isinstance(share, float) or share < _OF_MEMORY_AT_LEAST:
        return None
    lines = texts[best].fill_null("").str.strip_chars_end("\r\n")
    clocks = [at for at, name in enumerate(table.names) if recognise(name).axis is AxisKind.SECONDS]
    for at in clocks[:1]:
        stamps = _stamps(table.series[at]).to_frame("at").with_columns(lines.alias("line"))
        lines = stamps.select(pl.format("{} {}", pl.col("at").fill_null(""), "line")).to_series()
    return "\n".join(lines.to_list()).encode() + b"\n"


def _stamps(column: pl.Series) -> pl.Series:
    """Dates as they are, times since 1970 as dates."""
    text: pl.Series = column.cast(pl.String)
    newest = column.max() if column.dtype.is_numeric() else None
    size = float(newest) if isinstance(newest, (int, float)) else 0.0
    unit_s = next((unit for above, unit in EPOCH_SCALES if size > above), None)
    if unit_s is not None:
        milliseconds = (column.cast(pl.Float64) * (unit_s * 1e3)).round().cast(pl.Int64)
        text = milliseconds.cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%d %H:%M:%S%.3f")
    return text


def _is_endless(source: Source) -> bool:
    """Return True if one flat object fills the whole head: thousands of members, which would slow
    down every reader of lines.
    """
    head = source.content.lstrip()[:HEAD_BYTES]
    is_long = not source.whole and len(head) > HEAD_BYTES // 2 and b"\n" not in head
    return is_long and head.startswith(b"{") and b"[" not in head and head.count(b"{") == 1


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    for _ in range(_NESTING):
        frame = _without_objects_in_lists(frame)
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


def _without_id_above(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns without an id that all are below: `nodes.hX2kV9.jvm.mem.heap_used_in_bytes`."""
    paths = [name.split(".") for name in frame.columns]
    above = zip(*(path[:-1] for path in paths), strict=False)
    shared = [parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, above)]
    ids = [at for at, part in enumerate(shared, 1) if _ID.fullmatch(part)]
    names = [".".join(path[max(ids, default=0) :]) for path in paths]
    return frame.rename(dict(zip(frame.columns, names, strict=True))) if ids else frame


def _without_objects_in_lists(frame: pl.DataFrame) -> pl.DataFrame:
    """The only object of each list in its row; several with memory in rows of their own, which a
    label distinguishes, or in columns where other columns have memory too.
    """
    paths = {name: list(_paths(name, kind)) for name, kind in frame.schema.items()}
    amounts = {name for name, found in paths.items() if any(map(_is_memory, found))}
    for name in [name for name, kind in frame.schema.items() if kind == pl.List(pl.Struct)]:
        sizes = frame[name].list.len()
        largest = sizes.max()
        if (sizes == 1).all():
            frame = frame.explode(name)  # the only container of a pod
        elif name in amounts and isinstance(largest, int) and largest <= _PARTS_AT_MOST:
            if amounts == {name}:
                frame = _in_rows(frame, name, paths[name])
            else:
                places = [pl.col(name).list.get(at, null_on_oob=True) for at in range(largest)]
                named = [place.alias(f"{name}.{at}") for at, place in enumerate(places)]
                frame = frame.with_columns(named).drop(name)
    return frame


def _in_rows(frame: pl.DataFrame, name: str, paths: Sequence[Path]) -> pl.DataFrame:
    """The objects of a list in rows of their own, with a label: their name or number, or their
    place in the list.
    """
    label = name.rpartition(".")[2].removesuffix("s")
    label = label if recognise(label).part is Part.LABEL else _PART
    if label in frame.columns:
        return frame
    members = [path[1:] for wanted in _NAMES for path in paths if path[1:] == wanted]
    named = (pl.col(name).list.eval(_member(path)) for path in members)
    apart = (one for one in named if _distinguishes(frame.select(one).to_series()))
    labels = next(apart, pl.int_ranges(pl.col(name).list.len()))
    return frame.with_columns(labels.alias(label)).explode(name, label)


def _member(path: Path) -> pl.Expr:
    member = pl.element()
    for name in path:
        member = member.struct.field(name)
    return member


def _distinguishes(labels: pl.Series) -> bool:
    """Return True if the labels of each list differ: GPUs may all have the name of their model."""
    return bool((labels.list.n_unique() == labels.list.len()).all())


def _paths(name: str, kind: object) -> Iterator[Path]:
    """The names from a column down to each member of its objects."""
    inner = kind.inner if isinstance(kind, pl.List) else kind
    if not isinstance(inner, pl.Struct):
        yield (name,)
        return
    for field in inner.fields:
        yield from ((name, *path) for path in _paths(field.name, field.dtype))


def _is_memory(path: Path) -> bool:
    return recognise(".".join(path)).part is Part.METRIC
