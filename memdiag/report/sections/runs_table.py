"""The runs that were kept: a line each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.text import Text

from memdiag.report.text import numbers, rates, text_layout, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column, first_fitting
from memdiag.values.findings import Interval
from memdiag.values.kept_run import KeptRun
from memdiag.values.measurements import Axis, AxisKind, Unit
from memdiag.values.verdict import Verdict

# Most cells of the command, and whether there is a column "when" (the name of a run begins with its
# time): the first form that fits is taken.
_FORMS = ((60, True), (40, True), (24, True), (12, True), (0, True), (0, False))
_GROWING = (Verdict.LEAK, Verdict.INCONCLUSIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Growth as a report has it.

    per_x: growth rate per unit of the axis, in `unit`.
    """

    per_x: Interval
    axis: Axis
    unit: Unit


def table(runs: Sequence[KeptRun], screen: Screen, now: datetime) -> list[Text]:
    """A line for each run, in the order given. now: with a time zone."""
    tables = (_table(runs, screen, cells, now if has_when else None) for cells, has_when in _FORMS)
    return first_fitting(tables, screen.width)


def total(runs: Sequence[KeptRun]) -> str:
    """`12 runs, 34.1 MB`."""
    counted = "1 run" if len(runs) == 1 else f"{len(runs):,} runs"
    return f"{counted}, {numbers.size(sum(run.size_bytes for run in runs))}"


def _table(runs: Sequence[KeptRun], screen: Screen, cells: int, now: datetime | None) -> list[Text]:
    columns = [Column("run", [Text(screen.show(run.id)) for run in runs])]
    if now is not None:
        columns.append(Column("when", [Text(_when(run, now)) for run in runs], right=True))
    if cells:
        commands = [screen.show(" ".join(run.command) or "-", cells=cells) for run in runs]
        columns.append(Column("command", [Text(command) for command in commands]))
    columns += [
        Column("verdict", [_verdict(run) for run in runs]),
        Column("growth", [Text(_growth(run)) for run in runs]),
        Column("size", [Text(numbers.size(run.size_bytes)) for run in runs], right=True),
    ]
    return text_layout.table(columns, gap=2)


def _when(run: KeptRun, now: datetime) -> str:
    """`2 h ago`."""
    ago_s = (now - run.began_at).total_seconds()
    if ago_s < 0:
        return "-"
    value, unit, *_ = numbers.duration(float(max(1, round(ago_s)))).split()
    return f"{value.partition('.')[0]} {unit} ago"


def _verdict(run: KeptRun) -> Text:
    found = verdict_of(run.report)
    if found is None:
        return Text("recording" if run.is_recording else "not judged", "dim")
    bold = "bold " if found is Verdict.LEAK else ""
    return Text(found.name, f"{bold}{wording.STYLES[found]}")


def _growth(run: KeptRun) -> str:
    found = growth_of(run.report)
    if found is None or not found.per_x.value > 0:
        return "-"
    return rates.rate(found.per_x, found.axis, found.unit).brief()


def verdict_of(report: Mapping[str, Any]) -> Verdict | None:
    """The verdict in the JSON document of a report; None if it has none."""
    try:
        return Verdict(report["verdict"])
    except (KeyError, ValueError, TypeError):
        return None


def growth_of(report: Mapping[str, Any]) -> Growth | None:
    """The growth that the headline of a report has; None if nothing grows."""
    try:
        found = report["recordings"][0]
        deciding = found["series"][found["decided_by"]]
        ends = (found["growth"] or deciding)["growth_per_x"]
        growth = Growth(
            per_x=Interval(**{key: _number(value) for key, value in ends.items()}),
            axis=Axis(name=str(deciding["axis"]["name"]), kind=AxisKind(deciding["axis"]["kind"])),
            unit=Unit(deciding["unit"]),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None
    return growth if verdict_of(found) in _GROWING else None


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
