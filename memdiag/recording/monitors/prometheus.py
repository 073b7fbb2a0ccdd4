"""Answers of Prometheus to a range query (`/api/v1/query_range`, or `promtool -o json`), exports of
VictoriaMetrics, and what exporters print, scraped again and again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from memdiag.errors import ReadError
from memdiag.recording.documents.json_document import parsed
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.line_tools import table_of_lines
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.table import Table
from memdiag.values.sanitize import printable

_NAME = "__name__"
# Exporters that leave the unit out of names: cAdvisor counts bytes, DCGM MiB.
_UNITS = (("container_memory_", "bytes"), ("DCGM_FI_DEV_FB_", "MiB"))
_HINTS = (b'"metric"', b'"resultType"', b'"errorType"')
_SERIES_AT_MOST = 5000
# A line of an exporter's page, `name{label="value"} 4.1e+08` and perhaps a time in milliseconds; or
# of promtool's answer: `name{label="value"} => 410000000 @[1741683600.123]`, which has no name if
# the query was a sum or the like.
_SAMPLE = re.compile(
    r'([A-Za-z_:][\w:]*|(?=\{.{1,4000} => ))(\{(?:[^"}]|"(?:\\.|[^"\\])*")*\})?'
    r" (?:=> )?([-+]?[0-9.]\S*|NaN)"
    r"(?: ([0-9]{13})| @\[([0-9.]+)\])?"
)
# Below `name{label="value"} =>`, where promtool answers a range.
_SAMPLE_BELOW = re.compile(r"[-+]?[0-9.]\S* @\[[0-9.]+\]")
_ABOVE = " =>"
_TYPE = "# TYPE "
_SAMPLES_AT_LEAST = 4

Found = Mapping[str, Any]


def is_range(source: Source) -> bool:
    """Return True if the source mentions keys of an answer."""
    return any(hint in source.content for hint in _HINTS)


def read_range(source: Source) -> Table | None:
    """Time, the labels that distinguish the series, and one column per metric."""
    series = _series(_answers(source), source.name)
    if series is None:
        return None
    if not series:
        raise ReadError(
            "the query found no series",
            source=source.name,
            remedy="check the name and the time range",
        )
    kept = [found for found in series if not _name(found).endswith("_total")][:_SERIES_AT_MOST]
    if not kept:
        raise ReadError(
            f"its {len(series)} series are counters that only increase, not amounts of memory",
            source=source.name,
            remedy="ask for a gauge, such as process_resident_memory_bytes",
        )
    left_out = len(series) - len(kept)
    return _as_table(kept, (f"{left_out} counters (..._total) were left out",) if left_out else ())


def is_exposition(source: Source) -> bool:
    """Return True if the head has pages of exporters: samples, and their types or labels."""
    lines = source.head().split("\n")
    series: list[str] = []
    samples = [sample for line in lines if (sample := _sample(line, series)) is not None]
    is_typed = any(sample[2] or sample[5] for sample in samples) or any(
        _TYPE in line for line in lines
    )
    return is_typed and len(samples) >= max(_SAMPLES_AT_LEAST, len(lines) / 10)


def read_exposition(source: Source) -> Table | None:
    """One row per page, with a column for each sample of memory that is not a counter; one per time
    if samples have times of their own, which may go back within a page.
    """
    series: list[str] = []

    def row_of(line: str) -> dict[str, str] | None:
        sample = _sample(line.strip(), series)
        if sample is None:
            return None
        name = _with_unit(sample[1])
        at_s = sample[5] or (f"{int(sample[4]) / 1e3}" if sample[4] else "")
        is_amount = not name or (
            recognise(name).part is Part.METRIC and not name.endswith("_total")
        )
        if not is_amount:
            return {}
        return {**({"timestamp": at_s} if at_s else {}), name + (sample[2] or ""): sample[3]}

    table = table_of_lines(source, row_of)
    if table is None or "timestamp" not in table.names:
        return table
    at_s = table.series[table.names.index("timestamp")].cast(pl.Float64, strict=False)
    order = at_s.arg_sort(nulls_last=True)
    return replace(table, columns=tuple(column.gather(order) for column in table.series))


def _sample(line: str, series: list[str]) -> re.Match[str] | None:
    """The sample in a line, which may belong to the last series that a line has named alone."""
    if line.endswith(_ABOVE):
        series[:] = [line]
    is_below = bool(series) and _SAMPLE_BELOW.fullmatch(line) is not None
    return _SAMPLE.fullmatch(f"{series[0]} {line}" if is_below else line)


def _answers(source: Source) -> Any:
    """The answer, or a list of several, which may have a line each."""
    document = parsed(source)
    if document is not None:
        return document
    lines = filter(bytes.strip, source.all_bytes().split(b"\n"))
    try:
        return [json.loads(line) for line in lines]
    except ValueError:
        return None


def _of_moments(answers: Sequence[Found]) -> list[Found]:
    """The series of answers to an instant query, asked again and again."""
    values: dict[str, list[Any]] = {}
    for one in (one for answer in answers for one in answer["data"].get("result", ())):
        if isinstance(one, dict) and isinstance(one.get("metric"), dict) and "value" in one:
            values.setdefault(json.dumps(one["metric"], sort_keys=True), []).append(one["value"])
    return [{"metric": json.loads(key), "values": pairs} for key, pairs in values.items()]


def _series(document: Any, source: str) -> list[Found] | None:
    """The series of the answer, None if it is something else."""
    if isinstance(document, dict):
        _refuse_failure(document, source)
        data = document.get("data", document)
        document = data.get("result") if isinstance(data, dict) else None
    if not isinstance(document, list):
        return None
    if document and all(isinstance(a, dict) and isinstance(a.get("data"), dict) for a in document):
        return _of_moments(document) or None
    if not all(isinstance(one, dict) and isinstance(one.get("metric"), dict) for one in document):
        return None
    if document and all("value" in one and "values" not in one for one in document):
        raise ReadError(
            "it answers an instant query, which has a single moment",
            source=source,
            remedy="query a range: /api/v1/query_range?query=...&start=...&end=...&step=15",
        )
    found = [_in_pairs(one) for one in document if isinstance(one.get("values"), list)]
    return found if found or not document else None


def _in_pairs(found: Found) -> Found:
    """VictoriaMetrics exports times in milliseconds beside the values."""
    at_ms, values = found.get("timestamps"), found["values"]
    if not isinstance(at_ms, list) or not all(isinstance(one, (int, float)) for one in at_ms):
        return found
    pairs = [(at / 1e3, value) for at, value in zip(at_ms, values, strict=False)]
    return {**found, "values": pairs}


def _refuse_failure(document: Found, source: str) -> None:
    if document.get("status") == "error":
        reason = printable(str(document.get("error", "no reason given")))[:200]
        raise ReadError(
            f"Prometheus reports that the query failed: {reason}",
            source=source,
            remedy="correct it",
        )


def _name(found: Found) -> str:
    return str(found["metric"].get(_NAME, "value"))


def _with_unit(name: str) -> str:
    for prefix, unit in _UNITS:
        if name.startswith(prefix) and not name.endswith("_bytes"):
            return f"{name} ({unit})"
    return name


def _as_table(series: Sequence[Found], notes: tuple[str, ...]) -> Table:
    labels = _distinguishing(series)
    names = list(dict.fromkeys(_name(found) for found in series))
    frames = []
    for found in series:
        at, values = _readings(found["values"])
        label = " ".join(str(found["metric"][key]) for key in labels if key in found["metric"])
        frame = pl.DataFrame({"timestamp": at, "process": [label] * len(at)}).with_columns(
            pl.Series(f"metric {names.index(_name(found))}", values)
        )
        frames.append(frame)
    rows = pl.concat(frames, how="diagonal").sort("timestamp", maintain_order=True)
    columns = [rows["timestamp"], *(rows[f"metric {at}"] for at in range(len(names)))]
    shown = ["timestamp", *map(_with_unit, names)]
    if labels:
        shown.append("process")
        columns.append(rows["process"])
    return Table(names=tuple(shown), columns=tuple(columns), first_line=None, notes=notes)


def _distinguishing(series: Sequence[Found]) -> list[str]:
    """Labels that differ between series of one metric."""
    keys = dict.fromkeys(key for found in series for key in found["metric"] if key != _NAME)
    return [key for key in keys if len({str(found["metric"].get(key)) for found in series}) > 1]


def _readings(pairs: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Times and values; NaN for what is not a pair of numbers."""
    at, values = np.full(len(pairs), np.nan), np.full(len(pairs), np.nan)
    for row, pair in enumerate(pairs):
        try:
            at[row], values[row] = float(pair[0]), float(pair[1])
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            continue
    return at, values
