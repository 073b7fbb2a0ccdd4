"""A text table or a Parquet file as columns: the only place that calls a CSV parser."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memdiag.errors import ReadError
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import as_series, pl
from memdiag.recording.parsing.cells import NULLS, numbers_in
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.number_marks import decimal_commas
from memdiag.recording.tables.csv_dialect import CELL_END, Layout, split_line
from memdiag.recording.tables.dated_sections import with_dates_between
from memdiag.recording.tables.plain_numbers import (
    commas_in,
    has_groups_perhaps,
    typed,
    unclear,
    with_decimal_points,
)
from memdiag.values import units
from memdiag.values.metrics import is_native
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.recording.lazy_polars import Column

_INFER_ROWS = 1000
# Rows of larger files are not counted for a note.
# Heads (64 KiB) below which a file is not tried by its head. Heuristic.
_SMALL = 8
# Longer lists hold samples or a histogram, not a value for each device.
_PLACES_AT_MOST = 64
_RAGGED_BYTES = 16 << 20
_LINES_LOOKED_AT = 200
_BY_DELIMITER = (
    "1.000 is read as one thousand: semicolons stand between the cells, as where commas stand"
    " before decimals"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Named columns of equal length, as read.

    names: as found; not necessarily unique.
    columns: same order as `names`; `series` has all of them as polars series.
    first_line: line of the first row in the source, None if rows are not lines.
    notes: what had to be left out.
    unread_share: of the readings, before their cells are read: another number may be the right one.
    totals: by the name of an axis or a fill level, what it counts up to: 40 in `3/40`.
    assumed: names of axes that only their place in a line gave.
    is_chosen: the reader left out the sizes that the words around them do not show to be memory.
    """

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    first_line: int | None
    notes: tuple[str, ...] = ()
    unread_share: float = 0.0
    totals: Mapping[str, float] = field(default_factory=dict)
    assumed: frozenset[str] = frozenset()
    is_chosen: bool = False

    @classmethod
    def of(
        cls,
        frame: pl.DataFrame,
        names: Sequence[str] = (),
        *,
        first_line: int | None = None,
        notes: tuple[str, ...] = (),
    ) -> Table:
        """The columns of a frame, under their own names if no others are given."""
        return cls(
            names=tuple(names or frame.columns),
            columns=tuple(frame.get_columns()),
            first_line=first_line,
            notes=notes,
        )

    def __len__(self) -> int:
        return max(map(len, self.columns), default=0)

    @property
    def series(self) -> tuple[pl.Series, ...]:
        return tuple(map(as_series, self.columns))

    def with_decimal_points(self) -> Table:
        """The table with points for commas before decimals, if its cells have them there."""
        if commas_in(self.columns):
            return replace(self, columns=with_decimal_points(self.columns))
        return self

    def filter(self, kept: pl.Series, *notes: str) -> Table:
        """The rows that are kept, which are no longer lines of the source."""
        columns = tuple(column.filter(kept) for column in self.series)
        return replace(self, columns=columns, first_line=None, notes=(*self.notes, *notes))


def read_text_table(source: Source, layout: Layout) -> Table:
    """All rows of a text table. Raises ReadError if the parser gives up."""
    torn = torn_line(source, layout)
    in_place = source.path is not None and not source.whole and not torn
    in_place = in_place and layout.delimiter not in CELL_END and _header_alone(source, layout)
    raw = None if in_place else _rows(source, layout, torn)
    frame = _parse(source, raw, layout)
    marks: tuple[str, ...] = ()
    if _may_have_commas(source, layout):
        frame, marks = _with_points(frame, _parse(source, raw, layout, typed=False), layout)
    if all(column.has_nulls() for column in frame.get_columns()):
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    frame, with_headers = _without_headers(frame, layout), len(frame)
    names, rows = layout.names + ("",) * (frame.width - len(layout.names)), len(frame)
    above = source.head().split("\n")[: layout.skip_lines]
    is_loop = rows < with_headers
    frame, names = with_dates_between(frame, names[: frame.width], above, is_loop=is_loop)
    notes: tuple[str, ...] = ("the last line is torn off and was left out",) if torn else ()
    notes += marks
    notes += () if raw is None or len(frame) < rows else _ragged(raw, layout)
    first_line = layout.skip_lines + 1
    if (units_ := _row_of_units(frame)) is not None:
        names = tuple(f"{n} ({u})" if u else n for n, u in zip(names, units_, strict=True))
        frame, first_line = frame.slice(1), first_line + 1
    return Table.of(frame, names, first_line=first_line, notes=notes)


def _may_have_commas(source: Source, layout: Layout) -> bool:
    """Return True if commas may stand before decimals, by the first lines."""
    if layout.delimiter == "," and b'"' not in source.content:
        return False
    lines = source.head().split("\n")[layout.skip_lines :][:_LINES_LOOKED_AT]
    cells = [cell for line in lines for cell in split_line(line, layout.delimiter)]
    numbers = numbers_in(pl.Series(cells, dtype=pl.String)).drop_nulls()
    marked = numbers.filter(numbers.str.contains("[.,]")).to_list()
    return bool(marked) and decimal_commas(marked) is not False


def _with_points(
    frame: pl.DataFrame, text: pl.DataFrame, layout: Layout
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The table, with points for commas before decimals if its cells have them there, and a note if
    only the delimiter shows that.

    frame, text: the table with numbers, and as it was written.
    """
    columns = text.get_columns()
    shown = commas_in(columns)
    notes: tuple[str, ...] = ()
    if shown is None and layout.delimiter == ";" and has_groups_perhaps(columns):
        shown, notes = True, (_BY_DELIMITER,)
    if not shown:
        return frame, unclear(columns) if shown is None else ()
    return pl.DataFrame([typed(as_series(one)) for one in with_decimal_points(columns)]), notes


def _ragged(raw: bytes, layout: Layout) -> tuple[str, ...]:
    """A note about rows with more or fewer cells than the header, () if there are none."""
    if layout.delimiter in CELL_END or b'"' in raw or len(raw) > _RAGGED_BYTES:
        return ()
    delimiter, width = layout.delimiter.encode(), layout.columns - 1
    lines = [line.rstrip() for line in raw.split(b"\n")]
    widths = [
        (at, line.count(delimiter))
        for at, line in enumerate(lines, layout.skip_lines + 1)
        if line and not line.startswith(b"#")
    ]
    short = [at for at, found in widths if found < width]
    long = [at for at, found in widths if found > width]
    if not short and not long:
        return ()
    rows = "1 row has" if len(short) + len(long) == 1 else f"{len(short) + len(long)} rows have"
    first = min(short + long)
    return (f"{rows} more or fewer cells than the header, the first is line {first}",)


def _row_of_units(frame: pl.DataFrame) -> list[str] | None:
    """The units in the first row, "" where a column has none; None if it has no unit of memory."""
    if not len(frame):
        return None
    cells = ["" if cell is None else str(cell).strip(" []()") for cell in frame.row(0)]
    known = [units.bytes_per_unit(cell) is not None for cell in cells]
    others = all(
        cell in {"", "%", "-"} or units.seconds_per_unit(cell) is not None
        for cell, is_size in zip(cells, known, strict=True)
        if not is_size
    )
    if not any(known) or not others:
        return None
    return [cell if size else "" for cell, size in zip(cells, known, strict=True)]


def _without_headers(frame: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Drop repeated headers: of a command in a loop, or of runs that append to one file."""
    named = [
        (column, name.strip())
        for column, name in zip(frame.get_columns(), layout.names, strict=False)
        if name.strip() and column.dtype == pl.String
    ]
    # A header among the rows turns every column into text.
    with_names = sum(bool(name.strip()) for name in layout.names[: frame.width])
    if not layout.skip_lines or not named or len(named) < with_names:
        return frame
    again = pl.Series([True]).new_from_index(0, len(frame))
    for column, name in named:
        again &= (column.str.strip_chars() == name).fill_null(value=False)
        if not again.any():
            return frame
    return frame.filter(~again)


def read_parquet(source: Source) -> Table:
    """All rows of a Parquet file."""
    try:
        frame = pl.read_parquet(source.path if source.path else io.BytesIO(source.content))
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise ReadError(
            "not a valid Parquet file",
            source=source.name,
            remedy="if memdiag was killed while writing it, read the CSV beside it",
        ) from error
    return Table.of(without_lists(frame))


def without_lists(frame: pl.DataFrame) -> pl.DataFrame:
    """The columns whose cells are numbers or text. A short list of numbers below a name of memory
    becomes a column for each of its places, which stand for devices or processes; any other list
    below such a name a column of text, which cannot be read.
    """
    columns: list[pl.Series] = []
    for column in frame.get_columns():
        kind = column.dtype
        if isinstance(kind, (pl.List, pl.Array)):
            columns += _places(column)
        elif not kind.is_nested() and kind not in (pl.Binary, pl.Object):
            columns.append(column)
    return pl.DataFrame(columns)


def _places(column: pl.Series) -> list[pl.Series]:
    """A column per place of its lists, [] unless their name is one of memory."""
    inner = getattr(column.dtype, "inner", None)
    if inner is None or recognise(column.name).part is not Part.METRIC:
        return []
    lists = column.cast(pl.List(inner))
    longest = lists.list.len().max()
    if not inner.is_numeric() or not isinstance(longest, int) or longest > _PLACES_AT_MOST:
        return [pl.Series(column.name, ["list"] * len(column))]
    return [
        lists.list.get(at, null_on_oob=True).alias(f"{column.name}.{at}") for at in range(longest)
    ]


def torn_line(source: Source, layout: Layout) -> bool:
    """Return True if the last line has no line end, and too few cells or memdiag wrote the file."""
    end = source.tail if source.tail else source.content
    if end.endswith((b"\n", b"\r")) or b"\n" not in end:
        return False
    if is_native(layout.names):
        return True
    last = end[end.rfind(b"\n") + 1 :].decode("utf-8", errors="replace")
    cells = last.split() if layout.delimiter in CELL_END else last.split(layout.delimiter)
    return len(cells) < layout.columns


def _header_alone(source: Source, layout: Layout) -> bool:
    """Return True if exactly one plain header line precedes the rows."""
    return layout.skip_lines == 1 and not source.content.lstrip(b"\xef\xbb\xbf").startswith(b"#")


def _rows(source: Source, layout: Layout, torn: bool) -> bytes:
    """The rows without the lines before them."""
    raw = source.all_bytes()
    start = 0
    for _ in range(layout.skip_lines):
        start = raw.find(b"\n", start) + 1
    above = [line for line in raw[:start].split(b"\n") if line.strip()]
    raw = raw[start : raw.rfind(b"\n") + 1] if torn else raw[start:]
    if layout.delimiter in CELL_END:
        for line in above:  # a monitor prints them again on each screen
            raw = raw.replace(b"\n" + line + b"\n", b"\n")
        raw = re.sub(
            CELL_END[layout.delimiter].encode(), b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", raw)
        )
    return raw


def _plain_numbers(place: Path, head: bytes, layout: Layout) -> pl.DataFrame | None:
    """A table of only numbers and empty cells, read in place in half the time.

    Half of the parser's time goes into null words, comments and quotes. None if any cell holds
    something else, which the `head` shows in most files: `_parse` then allows for all of these.
    Files of a few heads are read at once.
    """

    def numbers(source: Path | bytes) -> pl.DataFrame | None:
        frame = pl.read_csv(
            source,
            has_header=False,
            separator=layout.delimiter,
            skip_rows=1,
            infer_schema_length=_INFER_ROWS,
            truncate_ragged_lines=True,
            quote_char=None,
            glob=False,
        )
        return frame if all(dtype.is_numeric() for dtype in frame.dtypes) else None

    try:
        if place.stat().st_size < _SMALL * len(head):
            return numbers(place)
        if numbers(head[: head.rfind(b"\n") + 1]) is not None:
            return numbers(place)
    except (pl.exceptions.PolarsError, OSError, ValueError):
        pass
    return None


def _parse(
    source: Source, raw: bytes | None, layout: Layout, *, typed: bool = True
) -> pl.DataFrame:
    """Typed columns if the types of the first rows hold for all, text columns otherwise, or if they
    are not to be typed.

    Reads `raw`; if it is None, the source in place, below its header.
    """
    place = source.path if raw is None else io.BytesIO(raw)
    assert place is not None
    if isinstance(place, Path) and typed:
        frame = _plain_numbers(place, source.content, layout)
        if frame is not None:
            return frame
    failure: Exception | None = None
    ways = ((True, '"'), (False, '"'), (False, None))
    for infer, quote in ways if typed else ways[1:]:
        try:
            return pl.read_csv(
                place,
                has_header=False,
                separator="\t" if layout.delimiter in CELL_END else layout.delimiter,
                skip_rows=1 if raw is None else 0,
                infer_schema=infer,
                infer_schema_length=_INFER_ROWS,
                null_values=NULLS,
                encoding="utf8" if infer else "utf8-lossy",
                truncate_ragged_lines=True,
                comment_prefix="#",
                quote_char=quote,
                glob=False,
            )
        except (pl.exceptions.PolarsError, OSError, ValueError) as error:
            failure = error
            if isinstance(place, io.BytesIO):
                place.seek(0)
    raise ReadError(
        f"its table cannot be parsed: {printable(str(failure).splitlines()[0])[:120]}",
        source=source.name,
        line=layout.skip_lines + 1,
        remedy="check the quotes and delimiters around that line",
    )
