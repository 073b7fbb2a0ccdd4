"""OpenTelemetry's metrics as JSON: what the collector writes to a file, an export in each line, and
what the console exporter of Python prints.

    {"resourceMetrics": [{"resource": {...}, "scopeMetrics": [{"metrics": [{"name":
    "process.memory.usage", "unit": "By", "gauge": {"dataPoints": [{"attributes": [...],
    "timeUnixNano": "1706000000007913445", "asInt": "323035136"}]}}]}]}]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from memdiag.errors import ReadError
from memdiag.recording.documents.json_document import parsed
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.table import Table

_EXPORT = re.compile(rb'"resource(?:Metrics|_metrics)"\s*:')
_LEVELS = ("gauge", "sum", "data")  # "data" in Python
_VALUES = ("asInt", "asDouble", "value")
_DELTA = frozenset((1, "AGGREGATION_TEMPORALITY_DELTA"))
# Attributes that say which amount it is, by the last word of their keys. Others say of what.
_AMOUNTS = frozenset(("state", "type"))
# A later one is another run of the same program.
_RUNS = ("service.instance.id", "process.pid")
_ATTRIBUTES_AT_MOST, _METRICS_AT_MOST, _SERIES_AT_MOST = 64, 200, 5000
_TIME, _PROCESS, _PID = "timestamp", "process", "pid"

Object = dict[str, Any]
Attributes = tuple[tuple[str, str], ...]
Series = tuple[str, str, Attributes]  # metric, run and what it is of
Readings = list[tuple[float | None, float | None]]


def is_export(source: Source) -> bool:
    """Return True if the head is JSON with the name of a list of exported metrics."""
    begins = source.content.lstrip()[:1] in {b"{", b"["}
    return begins and _EXPORT.search(source.content) is not None


def read_export(source: Source) -> Table | None:
    """A row per time and program, and a column per metric that is a level, not a counter."""
    torn: list[int] = []
    counters: set[str] = set()
    series: dict[Series, Readings] = {}
    for export in _exports(source, torn):
        for resource, metric in _metrics(export):
            name = metric["name"]
            if (points := _points(metric)) is None:
                counters.add(name)
                continue
            for point in points:
                readings = series.setdefault(_series(name, metric, resource, point), [])
                readings.append((_seconds(point), _value(point)))
    if not series and counters:
        raise ReadError(
            f"its {len(counters)} metrics are counters that only increase, not amounts of memory",
            source=source.name,
            remedy="export a gauge, such as process.memory.usage",
        )
    kept = dict(islice(sorted(series.items(), key=_by_meaning), _SERIES_AT_MOST))
    names = list(dict.fromkeys(name for name, _, _ in kept))[:_METRICS_AT_MOST]
    kept = {one: readings for one, readings in kept.items() if one[0] in names}
    found = {
        "lines that are not JSON": len(torn),
        "counters": len(counters),
        "further series": len(series) - len(kept),
    }
    notes = tuple(f"{what} left out: {number}" for what, number in found.items() if number)
    return _table(kept, names, notes) if kept else None


def _exports(source: Source, torn: list[int]) -> Iterator[Any]:
    """The documents: one, several below each other, or one in each line."""
    if (document := parsed(source)) is not None:
        yield from document if isinstance(document, list) else [document]
        return
    for at, line in enumerate(source.all_bytes().split(b"\n"), 1):
        try:
            yield json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            torn.append(at)


def _metrics(export: Any) -> Iterator[tuple[Attributes, Object]]:
    """Each metric, and what its resource is."""
    for one in _objects(export, "resourceMetrics"):
        resource = _attributes(_object(one, "resource"))
        for scope in _objects(one, "scopeMetrics"):
            named = (one for one in _objects(scope, "metrics") if isinstance(one.get("name"), str))
            yield from ((resource, metric) for metric in named)


def _points(metric: Object) -> list[Object] | None:
    """The data points that are levels, [] for histograms; None for a counter."""
    data = next((found for kind in _LEVELS if (found := _object(metric, kind))), {})
    temporality = _member(data, "aggregationTemporality")
    if _member(data, "isMonotonic") is True or temporality in _DELTA:
        return None
    points = _objects(data, "dataPoints")
    return [point for point in points if any(value in point for value in _VALUES)]


def _series(name: str, metric: Object, resource: Attributes, point: Object) -> Series:
    """What a data point is of: `process.memory (By)`, `system.memory.usage.free (By)`."""
    own = _attributes(point)
    amounts = [value for key, value in own if _is_amount(key)]
    known = dict(resource)
    run = next((known[key] for key in _RUNS if key in known), "")
    others = (pair for pair in own if not _is_amount(pair[0]))
    attributes = (*(pair for pair in resource if pair[0] not in _RUNS), *others)
    unit = str(metric.get("unit"))
    # "MiBy" is MiB; others are "s", "1", "{threads}".
    shown = f" ({unit.removesuffix('y')})" if unit.endswith("By") else ""
    return ".".join([name, *amounts]) + shown, run, attributes


def _is_amount(key: str) -> bool:
    return re.split("[._]", key)[-1] in _AMOUNTS


def _attributes(owner: Object) -> Attributes:
    """`[{"key": "state", "value": {"stringValue": "used"}}]`, in Python `{"state": "used"}`."""
    found = owner.get("attributes")
    if isinstance(found, dict):
        pairs = list(found.items())
    else:
        pairs = [
            (one.get("key"), next(iter(_object(one, "value").values()), None))
            for one in _objects(owner, "attributes")
        ]
    return tuple(
        (str(key), str(value))
        for key, value in pairs[:_ATTRIBUTES_AT_MOST]
        if isinstance(value, (str, int, float))
    )


def _seconds(point: Object) -> float | None:
    nanoseconds = _number(_member(point, "timeUnixNano"))
    return None if nanoseconds is None else nanoseconds / 1e9


def _value(point: Object) -> float | None:
    return _number(next(point[value] for value in _VALUES if value in point))


def _number(value: Any) -> float | None:
    """A number, also in quotes, as JSON has those of 64 bits; None for anything else."""
    try:
        return float(value) if isinstance(value, (str, int, float)) else None
    except (ValueError, OverflowError):
        return None


def _by_meaning(item: tuple[Series, Readings]) -> bool:
    """Sorts memory before all others."""
    return recognise(item[0][0]).part is not Part.METRIC


def _table(series: dict[Series, Readings], names: list[str], notes: tuple[str, ...]) -> Table:
    keys = _distinguishing(list(series))
    frames = []
    for (name, run, attributes), readings in series.items():
        known = dict(attributes)
        label = " ".join(known[key] for key in keys if key in known)
        times, values = zip(*readings, strict=True)
        frame = pl.DataFrame(
            {_TIME: times, "value": values}, schema_overrides={"value": pl.Float64}
        )
        of = {_PROCESS: label, _PID: run, "metric": names.index(name)}
        frames.append(frame.with_columns(pl.lit(value).alias(key) for key, value in of.items()))
    index = [_TIME, _PROCESS, _PID]
    rows = pl.concat(frames).pivot("metric", index=index, values="value", aggregate_function="last")
    rows = rows.sort(_TIME, maintain_order=True)
    tags = [tag for tag in index[1:] if (rows[tag] != "").any()]
    columns = [_TIME, *tags, *map(str, range(len(names)))]
    return Table.of(rows.select(columns), (_TIME, *tags, *names), notes=notes)


def _distinguishing(series: Sequence[Series]) -> list[str]:
    """As few keys as tell the series of each metric apart, names first."""
    keys = dict.fromkeys(key for _, _, attributes in series for key, _ in attributes)
    known = [(name, dict(attributes)) for name, _, attributes in series]
    chosen: list[str] = []
    apart = len({name for name, _, _ in series})
    for key in sorted(islice(keys, _ATTRIBUTES_AT_MOST), key=lambda key: not key.endswith("name")):
        wanted = [*chosen, key]
        now = len({(name, *map(one.get, wanted)) for name, one in known})
        if now > apart:
            chosen, apart = wanted, now
    return chosen


def _object(owner: Object, name: str) -> Object:
    found = _member(owner, name)
    return found if isinstance(found, dict) else {}


def _objects(owner: Any, name: str) -> list[Object]:
    found = _member(owner, name) if isinstance(owner, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _member(owner: Object, name: str) -> Any:
    """`timeUnixNano`, which Python calls `time_unix_nano`."""
    return owner.get(name, owner.get(re.sub("([A-Z])", r"_\1", name).lower()))
