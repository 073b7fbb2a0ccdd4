"""Runs over time, from a file of results."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from memdiag.analysis.history.change_points import DEFAULT, Measured, trends
from memdiag.errors import ReadError
from memdiag.fleet.results_file import rows_of
from memdiag.values.history import History, Quantity, Run
from memdiag.values.measurements import Role
from memdiag.values.sanitize import printable

_MEMORY = frozenset(
    role.value
    for role in (
        Role.RESIDENT,
        Role.UNIQUE,
        Role.DEVICE,
        Role.DEVICE_RESERVED,
        Role.DEVICE_ALLOCATED,
        Role.IN_USE,
    )
)
_TREE, _BYTES = "tree", "bytes"


def history(
    path: Path, labels: Sequence[str], *, since: str = "", metrics: Sequence[str] = ()
) -> History:
    """The changes in the runs that a file of results holds.

    labels: runs with the same of these are compared; () for all. since: ISO time of the earliest
    run, "" for all. metrics: only these, () for all memory in bytes. Raises ReadError.
    """
    rows = _rows(path, since)
    series: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    groups, runs = set(), set()
    for row in rows:
        group = _group(json.loads(row["labels"] or "{}"), labels)
        groups.add(group)
        runs.add(row["path"])
        if row["unit"] != _BYTES or row["role"] not in _MEMORY:
            continue
        if metrics and row["metric"] not in metrics:
            continue
        there = series[group, row["metric"]]
        if row["path"] not in there or row["process"] == _TREE:
            there[row["path"]] = row
    measured = []
    for (group, metric), by_path in sorted(series.items()):
        found = sorted(by_path.values(), key=lambda row: (_at(row), row["path"]))
        measured.append(_measured(group, metric, Quantity.PEAK, found))
        measured.append(_measured(group, metric, Quantity.GROWTH, found))
    enough = [one for one in measured if len(one.runs) >= 2 * DEFAULT.fewest]
    return History(
        runs=len(runs),
        groups=len(groups),
        trends=trends(enough),
        short=len(measured) - len(enough),
    )


def _rows(path: Path, since: str) -> Iterable[dict[str, Any]]:
    names, rows = rows_of(path)
    if not path.exists():
        raise ReadError("no such file", source=str(path))
    if not names:
        raise ReadError(
            "it does not hold results of memdiag",
            source=str(path),
            remedy="memdiag analyze 'runs/*.csv' --results runs.sqlite",
        )
    for values in rows:
        row = dict(zip(names, values, strict=True))
        if row["metric"] is not None and _at(row) >= since:
            yield row


def _at(row: dict[str, Any]) -> str:
    return str(row["started_at"] or row["first_at"])


def _group(known: dict[str, Any], labels: Sequence[str]) -> str:
    return " / ".join(printable(str(known.get(label, "-"))) for label in labels)


def _measured(
    group: str, metric: str, quantity: Quantity, rows: Sequence[dict[str, Any]]
) -> Measured:
    """The runs of one series. What matters of growth is what it adds over a run."""
    axes = [row["axis"] for row in rows]
    axis = max(axes, key=axes.count)
    kept = [row for row in rows if row["axis"] == axis and _value(row, quantity) is not None]
    peaks = sorted(abs(row["peak_value"]) for row in kept)
    level = peaks[len(peaks) // 2] if peaks else 0.0
    if quantity is Quantity.GROWTH and kept:
        lengths = sorted(row["last_x"] - row["first_x"] for row in kept)
        level /= max(lengths[len(lengths) // 2], 1e-300)
    runs = [
        Run(
            at=_at(row),
            path=printable(row["path"]),
            commit=printable(str(json.loads(row["labels"] or "{}").get("commit", ""))),
            value=float(_value(row, quantity) or 0.0),
        )
        for row in kept
    ]
    return Measured(
        group=group,
        quantity=quantity,
        metric=metric,
        unit=_BYTES,
        axis=axis,
        runs=tuple(runs),
        level=level,
    )


def _value(row: dict[str, Any], quantity: Quantity) -> float | None:
    value = row["peak_value"] if quantity is Quantity.PEAK else row["growth_per_x"]
    return None if value is None else float(value)
