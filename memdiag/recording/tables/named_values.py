"""Tables in which another column, or the file, says what the column of values is.

Databases and monitoring services export one row per reading: `time,metric,host,value,unit`.
TensorBoard names an exported scalar by its file: `run-a-tag-gpu_mem_mb.csv`, and Grafana a panel,
whose columns are named by what differs between its series: `Memory usage-data-2024-07-01.csv`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from memdiag.recording.lazy_polars import as_series, pl
from memdiag.recording.parsing.cells import has_any_number, to_numbers
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.values.measurements import Unit
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memdiag.recording.lazy_polars import Column
    from memdiag.recording.tables.table import Table

# From the most exact to the least, where there are several.
STATISTICS = (
    "value",
    "_value",
    "metricvalue",
    "metric_value",
    "countervalue",
    "used",  # of the JVM's `init`, `used`, `committed` and `max`
    "average",
    "avg",
    "mean",
    "maximum",
    "max",
    "last",
    "mean/increment",
    "state",
)
_NAMES = (
    *("metric", "metric_name", "metricname", "metricid", "_field", "field", "measurement"),
    *("counter name", "countername", "tag", "key", "series", "variable", "label", "name", "query"),
    "entity_id",
    "attribute",
)
_OF_JVM = {"init", "used", "committed", "max"}  # of memory, in bytes
_UNITS = ("unit", "units", "baseunit")
# InfluxDB's: `mem` and `used` in two columns.
_FIELD, _MEASUREMENT = "_field", "_measurement"
# More names are not those of metrics.
_NAMES_AT_MOST = 100
_TAG = "tag-"
_PANEL = re.compile(r"(.{1,200}?)-data(?:-as-[a-z]{1,40})?(?:-[0-9][0-9 _-]{0,40})?")


def with_named_values(table: Table, source: str) -> Table:
    """The table with a column for each metric that a column, or else the file, names.

    Unchanged if it has a column of memory, or nothing names the values.
    """
    columns = zip(table.names, table.columns, strict=True)
    if any(recognise(name).part is Part.METRIC and has_any_number(one) for name, one in columns):
        return table
    # (`measurements.value` of nested documents)
    lower = [name.strip().lower().rpartition(".")[2] for name in table.names]
    value = next((lower.index(name) for name in STATISTICS if name in lower), None)
    if value is None:
        return _of_panel(table, source)
    table = _with_measurement(table, lower)
    named_by = [lower.index(name) for name in _NAMES if name in lower]
    for at in named_by:
        if metrics := _metrics(table.columns[at]):
            return _apart(table, value, at, metrics, _units(table, lower))
    name = _name_of_file(source)
    if not named_by and recognise(name).part is Part.METRIC:
        names = (*table.names[:value], name, *table.names[value + 1 :])
        note = f"{table.names[value]} is taken for {printable(name)}, by the name of the file"
        return replace(table, names=names, notes=(*table.notes, note))
    return table


def _of_panel(table: Table, source: str) -> Table:
    """The table with the title of a panel before the names of its series, if that is of memory."""
    panel = _PANEL.fullmatch(PurePath(source).stem)
    if panel is None or recognise(panel[1]).part is not Part.METRIC:
        return table
    names = tuple(
        f"{panel[1]} {name}"
        if recognise(name).part is Part.OTHER and has_any_number(column)
        else name
        for name, column in zip(table.names, table.columns, strict=True)
    )
    note = f"its columns are taken for {printable(panel[1])}, by the name of the file"
    return replace(table, names=names, notes=(*table.notes, note))


def names_values(names: Sequence[str]) -> bool:
    """Return True if these columns are of values and of what each value is."""
    return any(map(is_value, names)) and any(name.strip().lower() in _NAMES for name in names)


def is_value(name: str) -> bool:
    """Return True for the name of a column of values that another column names."""
    return name.strip().lower() in STATISTICS


def _with_measurement(table: Table, lower: list[str]) -> Table:
    """The table with the measurement before the name of each field."""
    if not {_FIELD, _MEASUREMENT} <= set(lower):
        return table
    at = lower.index(_FIELD)
    above, field = (as_series(table.columns[lower.index(n)]) for n in (_MEASUREMENT, _FIELD))
    columns = (*table.columns[:at], above + " " + field, *table.columns[at + 1 :])
    return replace(table, columns=columns)


def _metrics(column: Column) -> list[str]:
    """The different names in a column, [] if none of them is of memory."""
    texts = as_series(column)
    if texts.dtype != pl.String:
        return []
    names = [name for name in texts.unique(maintain_order=True).to_list() if name]
    is_any = any(recognise(name).part is Part.METRIC for name in names[:_NAMES_AT_MOST])
    return names if is_any and len(names) <= _NAMES_AT_MOST else []


def _units(table: Table, lower: list[str]) -> pl.Series | None:
    at = next((lower.index(name) for name in _UNITS if name in lower), None)
    if at is None and set(lower) >= _OF_JVM:
        return pl.Series(["bytes"] * len(table), dtype=pl.String)
    units = None if at is None else as_series(table.columns[at])
    return None if units is None or units.dtype != pl.String else units


def _apart(
    table: Table, value: int, named_by: int, metrics: list[str], units: pl.Series | None
) -> Table:
    """The table without these two columns, and with one for each metric, empty in other rows."""
    cells = to_numbers(table.columns[value])
    if cells.unit is Unit.BYTES and units is not None:
        cells = to_numbers(_with_units(as_series(table.columns[value]), units))
    values, own = cells.values, cells.unit.value if cells.unit else ""
    row_metrics = as_series(table.columns[named_by])
    names, columns = [], []
    for metric in metrics:
        is_here = (row_metrics == metric).fill_null(value=False)
        of_rows = [] if units is None else units.filter(is_here).to_list()
        unit = own or next(iter(of_rows), "") or ""
        names.append(f"{metric} ({unit.lower()})" if unit else metric)
        columns.append(np.where(is_here.to_numpy(), values, np.nan))
    kept = [at for at in range(len(table.names)) if at not in (value, named_by)]
    return replace(
        table,
        names=(*(table.names[at] for at in kept), *names),
        columns=(*(table.columns[at] for at in kept), *columns),
    )


def _with_units(values: pl.Series, units: pl.Series) -> pl.Series:
    """The cells, those of a number alone with the unit beside it: of a printed table, whose cells
    may reach into the next column.
    """
    is_bare = values.str.contains(r"^\s*[0-9.,]+\s*$") & (units.fill_null("") != "")
    found: pl.Series = values.zip_with(~is_bare.fill_null(value=False), values + " " + units)
    return found


def _name_of_file(source: str) -> str:
    stem = PurePath(source).stem
    return stem.rpartition(_TAG)[2] if _TAG in stem else stem
