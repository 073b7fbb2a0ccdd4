"""JSON that is one document: lists of rows, columns of lists, and answers of Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

from memdiag.errors import ReadError
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.cells import EPOCH_SCALES
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.named_values import STATISTICS
from memdiag.recording.tables.table import Table
from memdiag.values import units

_LARGEST_BYTES = 512 << 20
_NESTING = 4
_COLUMNS_AT_MOST = 5000
_LOOKED_AT = 1 << 12
# What says beside the rows which metric they are of, in CloudWatch, Azure, Plotly and others.
_TITLES = ("label", "name", "metric", "metricname", "metricid", "target", "title", "id")
_TITLED = "key"  # of an object with one of these: `"Key": {"Metric": "os.memory.active.avg"}`
_NAME, _VALUE, _UNIT = "metric", "value", "unit"  # as tables of one row per reading have them
_WHICH = "series"
_SCOPE = "scope"  # the tags of a series of Datadog
_POINTS_AT_LEAST = 4
_SERIES_AT_MOST = 1000
_PARTS_AT_MOST = 16
_NAMED = {Part.AXIS, Part.METRIC}
_POINTS = {2: ("time", "value"), 3: ("wall time", "step", "value")}

_QUOTED = ("[{", '{"', "[[")
_FILLED = re.compile(r"[^\s,]")
_EPOCH = re.compile("[0-9]{9,19}")
_BEGINS = re.compile(rb"""\{|\[\s*(?:[\[\]{"0-9+-]|true|false|null|NaN|Infinity)""")

Row = Mapping[str, Any]
_Columns = Mapping[str, Sequence[Any]]


def is_json(source: Source) -> bool:
    """Return True if the source begins like one JSON document, not JSON line by line."""
    start = source.content.lstrip()[:_LOOKED_AT]
    return _BEGINS.match(start) is not None and not _is_lines(start)


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
        return _unquoted(_documents(raw.decode("utf-8-sig", errors="replace")))
    except (ValueError, RecursionError):
        return None


def _documents(text: str) -> Any:
    """The document, or a list of several below each other, each printed over several lines. Raises
    ValueError for anything else.
    """
    decoder = json.JSONDecoder()
    found = []
    at = 0
    while match := _FILLED.search(text, at):
        document, at = decoder.raw_decode(text, match.start())
        found.append(document)
        if "\n" not in text[match.start() : at] and _FILLED.search(text, at):
            raise ValueError("one object per line")
    if len(found) == 1:
        return found[0]
    return [one[0] if isinstance(one, list) and len(one) == 1 else _numbered(one) for one in found]


def _unquoted(document: Any) -> Any:
    """The document; members of its objects that are texts of JSON, as Alibaba's CloudMonitor writes
    its points, as what they say.
    """
    if not isinstance(document, dict):
        return document
    return {
        name: _said(one) if isinstance(one, str) and one[:2] in _QUOTED else one
        for name, one in document.items()
    }


def _said(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _is_lines(start: bytes) -> bool:
    first, _, second = start.partition(b"\n")
    return first.rstrip().endswith(b"}") and second.lstrip().startswith(b"{")


def read_json(source: Source) -> Table | None:
    """A list of objects, alone or in an object (`log_history`), or an object of equal lists."""
    document = parsed(source)
    if isinstance(document, list) and (points := _listed_points(document)):
        return _table(points)
    lists = [document] if isinstance(document, list) else []
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        if columns := _columns(document) or _named_rows(document) or _by_column(_deeper(document)):
            return _table(columns)
    if frames := list(islice(_frames(document), _SERIES_AT_MOST)):
        return _table(_beside(frames))
    rows = max((rows for one in lists if len(rows := _rows(one)) > 1), key=len, default=None)
    title = _title(document) if isinstance(document, dict) else ""
    if rows is not None and _has_memory(rows[0]):
        return _table(_by_column(rows))
    found = _below(list(islice(_within(document, title), _SERIES_AT_MOST)))
    return _table(_by_column(rows)) if found is None and rows is not None else found


def _listed_points(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """`[[wall time, step, value], ...]`, as TensorBoard exports a scalar, or pairs of time and
    value, in Graphite of value and time; {} for anything else.
    """
    widths = {len(row) if isinstance(row, list) else 0 for row in rows}
    names = _POINTS.get(widths.pop() if len(widths) == 1 else 0, ())
    if not names or any(isinstance(cell, (str, list, dict)) for row in rows for cell in row):
        return {}
    orders = [names, names[::-1]] if len(names) == len(_POINTS[2]) else [names]
    found = [{name: [row[at] for row in rows] for at, name in enumerate(one)} for one in orders]
    dated = [columns for columns in found if _are_moments(columns[names[0]])]
    return min(dated, key=lambda columns: _strides(columns[names[0]]), default={})


def _are_moments(cells: Sequence[Any]) -> bool:
    return all(cell is not None and cell >= EPOCH_SCALES[-1][0] for cell in cells)


def _strides(moments: Sequence[float]) -> int:
    """How many different strides there are: those of a clock are few."""
    return len({b - a for a, b in pairwise(moments)})


def _title(document: Row) -> str:
    """What the object says that it is of, "" if it does not."""
    members = {name.lower(): value for name, value in document.items()}
    titled = members.get(_TITLED)
    if isinstance(titled, dict):
        members = {name.lower(): value for name, value in titled.items()} | members
    for key in _TITLES:
        title = members.get(key)
        title = title.get("value", title.get("type")) if isinstance(title, dict) else title
        if isinstance(title, str) and _is_of_memory(title):
            unit = _unit(members.get(_UNIT))
            return f"{title} ({unit.lower()})" if units.bytes_per_unit(unit) else title
    return ""


def _unit(unit: Any) -> str:
    """The unit in `"B"` or in Datadog's `[{"short_name": "B"}, null]`, where the second one is what
    it is per; "" for none.
    """
    if isinstance(unit, list):
        there = [one for one in unit if one is not None]
        unit = there[0] if len(there) == 1 else ""
    if isinstance(unit, dict):
        unit = unit.get("short_name") or unit.get("name")
    return str(unit or "")


def _is_of_memory(title: str) -> bool:
    """Return True for a name of memory, also if it is one of a share: `MemoryUtilization`."""
    return any(recognise(name).part is Part.METRIC for name in (title, f"{title} (%)"))


def _has_memory(row: Row) -> bool:
    return any(recognise(name).part is Part.METRIC for name in row)


def _within(
    document: Any, title: str, scope: str = "", nesting: int = _NESTING * 2
) -> Iterator[_Columns]:
    """The series of points anywhere inside, below an object or a key that says what they are of."""
    if not nesting or not isinstance(document, (dict, list)):
        return
    if isinstance(document, list):
        columns: _Columns = {}
        if title and len(document) >= _POINTS_AT_LEAST:
            columns = _listed_points(document) or _by_column(_rows(document))
        inner = ((title, one) for one in document)
    else:
        title, scope = _title(document) or title, str(document.get(_SCOPE, scope))
        columns = (_series_in(document) if title else None) or {}
        inner = ((_key(name, one) or title, one) for name, one in document.items())
    if points := _points(columns, title):
        yield {_WHICH: [scope] * len(points[_VALUE]), **points} if scope else points
        return
    for named, one in inner:
        yield from _within(one, named, scope, nesting - 1)


def _key(name: str, value: Any) -> str:
    """The name of columns that an object has below it: `{"rss_mb": {"steps": [...], ...}}`."""
    return name if isinstance(value, dict) and _is_of_memory(name) else ""


def _series_in(document: Row) -> _Columns | None:
    """Lists of equal length, or an object of moments and readings: `{"1650000000": 812, ...}`."""
    long = {
        name: value
        for name, value in document.items()
        if isinstance(value, (list, dict)) and len(value) >= _POINTS_AT_LEAST
    }
    for value in long.values():
        if isinstance(value, dict) and all(map(_EPOCH.fullmatch, value)):
            return {"time": [float(moment) for moment in value], "value": list(value.values())}
    return _columns(document) or _columns(long)


def _frames(document: Any, nesting: int = _NESTING * 2) -> Iterator[_Columns]:
    """The columns of Grafana's frames and of Datadog's series, whose names are elsewhere:
    `{"schema": {"fields": [...]}, "data": {"values": [[...], ...]}}`,
    `{"series": [{"group_tags": [...], "unit": ...}], "times": [...], "values": [[...], ...]}`.
    """
    if not nesting or not isinstance(document, (dict, list)):
        return
    if isinstance(document, dict) and (columns := _frame(document) or _timed_series(document)):
        yield columns
        return
    for one in document.values() if isinstance(document, dict) else document:
        yield from _frames(one, nesting - 1)


def _beside(frames: Sequence[_Columns]) -> _Columns:
    """Frames beside each other, in the order of their first columns, which are moments."""
    rows: dict[Any, dict[str, Any]] = {}
    names: dict[str, None] = {}
    for n, frame in enumerate(frames):
        axis, *others = frame.keys()
        shown = {name: f"{name} #{n}" if name in names else name for name in others}
        names |= dict.fromkeys(shown.values())
        for at, moment in enumerate(frame[axis]):
            row = rows.setdefault(moment, {})
            row.update((shown[name], frame[name][at]) for name in others)
    moments = [moment for moment in rows if isinstance(moment, (int, float))]
    moments.sort()
    columns = {name: [rows[moment].get(name) for moment in moments] for name in names}
    return {next(iter(frames[0])): moments, **columns}


def _frame(document: Row) -> _Columns:
    fields = _list_of(dict, _at(document, "schema", "fields"))
    values = _list_of(list, _at(document, "data", "values"))
    if not fields or len(fields) != len(values):
        return {}
    names = [
        str(_at(field, "config", "displayNameFromDS") or _at(field, "labels", "__name__") or "")
        or str(field.get("name"))
        for field in fields
    ]
    return _equally_long(names, values)


def _timed_series(document: Row) -> _Columns:
    times = document.get("times")
    values, series = _list_of(list, document.get("values")), _list_of(dict, document.get("series"))
    if not isinstance(times, list) or not values or not series:
        return {}
    names = ["time"]
    for one in series:
        tags, unit = ", ".join(_list_of(str, one.get("group_tags"))), _unit(one.get(_UNIT))
        names.append(f"{tags or 'value'} ({unit})" if unit else tags or "value")
    return _equally_long(names, [times, *values])


def _at(document: Any, *keys: str) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _list_of(kind: type, found: Any) -> list[Any]:
    """The list, [] if it is none or has anything else in it."""
    is_list = isinstance(found, list) and all(isinstance(one, kind) for one in found)
    return found if is_list else []


def _equally_long(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> _Columns:
    """{} unless there is a name for each column, and the columns are of one length, of cells."""
    cells = all(_is_scalar(cell) for column in columns for cell in column)
    is_table = len(set(names)) == len(columns) and len(set(map(len, columns))) == 1 and cells
    return dict(zip(names, columns, strict=True)) if is_table else {}


def _below(series: Sequence[_Columns]) -> Table | None:
    """Series below each other, with their scopes or numbers if there are several; None for none."""
    if len(series) < 2:
        return _table(series[0]) if series else None
    lengths = [len(columns[_VALUE]) for columns in series]
    scopes = [columns[_WHICH][0] if _WHICH in columns else "" for columns in series]
    shown = scopes if len(set(scopes)) == len(scopes) else map(str, range(len(scopes)))
    which = [one for one, length in zip(shown, lengths, strict=True) for _ in range(length)]
    names = dict.fromkeys(name for columns in series for name in columns if name != _WHICH)
    joined = {
        name: [
            cell
            for columns, length in zip(series, lengths, strict=True)
            for cell in columns.get(name, [None] * length)
        ]
        for name in names
    }
    return _table({_WHICH: which, **joined})


def _points(columns: _Columns, title: str) -> _Columns:
    """Positions (`x` or the name of an axis) and a column of numbers, which the title is of, with
    its unit from the rows; {} for anything else. Of several positions, as of an interval, the last
    is kept.
    """
    axes = [name for name in columns if recognise(name).part is Part.AXIS or name == "x"]
    if not {"max", *STATISTICS}.isdisjoint(columns):
        axes = [name for name in axes if name != "min"]  # no minutes
    numbers = [
        name for name, cells in columns.items() if name not in axes and any(map(_is_number, cells))
    ]
    value = _value_of(numbers)
    if not axes or not value:
        return {}
    left_out = {*numbers, *axes[:-1]}
    others = {name: cells for name, cells in columns.items() if name not in left_out}
    of_unit = (others.pop(name) for name in list(others) if name.lower() == _UNIT)
    unit = next((str(cells[0]).lower() for cells in of_unit if len(set(cells)) == 1), "")
    named = f"{title} ({unit})" if unit else title
    return {**others, _NAME: [named] * len(columns[value]), _VALUE: columns[value]}


def _value_of(names: Sequence[str]) -> str:
    """The column of readings: the only one, or the most exact statistic; "" if neither exists."""
    if len(names) == 1:
        return names[0]
    lower = {name.lower(): name for name in names}
    return next((lower[name] for name in STATISTICS if name in lower), "")


def _is_number(cell: Any) -> bool:
    """Return True for numbers, also in quotes, as JSON has those of 64 bits."""
    return isinstance(cell, (int, float)) or (isinstance(cell, str) and cell.isdecimal())


def _named_rows(document: Any, nesting: int = _NESTING * 2) -> dict[str, list[Any]]:
    """`{"columns": ["step", "rss_mb"], "data": [[0, 5], [1, 6]]}`, as pandas, InfluxDB and others
    write, anywhere inside; {} for anything else.
    """
    if not nesting or not isinstance(document, (dict, list)) or len(document) > _PARTS_AT_MOST:
        return {}
    inner = list(document.values()) if isinstance(document, dict) else document
    lists = [one for one in inner if isinstance(one, list) and one]
    names = next((found for one in lists if (found := _texts(one))), [])
    widths = [{len(row) if isinstance(row, list) else 0 for row in rows} for rows in lists]
    rows = next(
        (one for one, width in zip(lists, widths, strict=True) if width == {len(names)}), []
    )
    if rows and any(recognise(name).part in _NAMED for name in names):
        return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    parts = (_named_rows(one, nesting - 1) for one in inner)
    return next(filter(None, parts), {})


def _texts(cells: Sequence[Any]) -> list[str]:
    """The texts, or names of columns: `[{"name": "TimeGenerated", "type": "datetime"}, ...]`; []
    for anything else.
    """
    names = [cell.get("name") if isinstance(cell, dict) else cell for cell in cells]
    texts = [name for name in names if isinstance(name, str)]
    return texts if len(texts) == len(names) else []


def _deeper(document: Any, nesting: int = _NESTING * 2) -> list[Row]:
    """The first list of objects with memory that is further inside, as `sadf -j` prints it; [] for
    none.
    """
    if not nesting or not isinstance(document, (dict, list)) or len(document) > _PARTS_AT_MOST:
        return []
    inner = list(document.values()) if isinstance(document, dict) else document
    lists = (_rows(one) for one in inner if isinstance(one, list) and len(one) >= _POINTS_AT_LEAST)
    rows = next((rows for rows in lists if rows and _has_memory(rows[0])), [])
    return rows or next(filter(None, (_deeper(one, nesting - 1) for one in inner)), [])


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
        inner = _numbered(value)
        if isinstance(inner, dict) and nesting:
            yield from _flat(inner, f"{prefix}{name}.", nesting - 1)
        elif _is_scalar(value):
            yield f"{prefix}{name}", value


def _numbered(value: Any) -> Any:
    """A list of the objects of devices or containers as an object with their numbers."""
    if not isinstance(value, list) or not 0 < len(value) <= _PARTS_AT_MOST:
        return value
    return {str(at): part for at, part in enumerate(value)} if all(map(_is_row, value)) else value


def _is_row(value: Any) -> bool:
    return isinstance(value, dict)


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
