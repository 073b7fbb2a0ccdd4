"""The picture of one quantity over runs: its values, and the medians between its changes."""

from __future__ import annotations

from memdiag.report.picture.model import Curve, Mark, MarkKind, Picture, Points
from memdiag.report.text import history_words
from memdiag.report.text.screen import Screen
from memdiag.values.history import Trend
from memdiag.values.measurements import AxisKind, Unit

# Part of the greatest value that the vertical axis covers at least.
_LEAST_SPAN = 0.02


def of_history(trend: Trend, screen: Screen) -> Picture:
    """The runs in the order of time, numbered from 1."""
    values = [run.value for run in trend.runs]
    marks = [
        Mark(
            x=float(trend.runs.index(change.since) + 1),
            label=f"{history_words.amount(trend, change)}, "
            f"{history_words.since(change.since, screen)}",
            kind=MarkKind.ONSET if change.is_increase else MarkKind.PLATEAU,
        )
        for change in trend.changes
    ]
    runs = Curve(
        name=history_words.quantity(trend, screen),
        metric=trend.metric,
        points=tuple((float(at), value) for at, value in enumerate(values, 1)),
        marks=tuple(marks),
    )
    medians = Curve(name="median", metric=trend.metric, points=_medians(trend))
    return Picture(
        unit=Unit(trend.unit),
        axis=AxisKind.INDEX,
        axis_word="run",
        curves=(runs, medians) if medians.points else (runs,),
        least_span=_LEAST_SPAN * max(map(abs, values), default=0.0),
    )


def _medians(trend: Trend) -> Points:
    """At each run that of the runs between two changes; none where nothing has changed."""
    if not trend.changes:
        return ()
    starts = [0, *(trend.runs.index(change.since) for change in trend.changes), len(trend.runs)]
    levels = [trend.changes[0].before, *(change.after for change in trend.changes)]
    return tuple(
        (float(at + 1), level)
        for level, first, end in zip(levels, starts, starts[1:], strict=False)
        for at in range(first, end)
    )
