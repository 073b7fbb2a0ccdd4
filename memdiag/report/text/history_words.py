"""Changes between runs in words."""

from __future__ import annotations

from memdiag.report.text import numbers, rates, wording
from memdiag.report.text.screen import Screen
from memdiag.values.history import Change, History, Quantity, Run, Trend
from memdiag.values.measurements import Axis, AxisKind, Unit

_COMMIT, _CELLS = 12, 40


def overall(found: History) -> str:
    """`1 of 2 series changed (20 runs)`."""
    changed = sum(bool(trend.changes) for trend in found.trends)
    groups = f" in {found.groups:,} groups" if found.groups > 1 else ""
    runs = "1 run" if found.runs == 1 else f"{found.runs:,} runs"
    short = f"; {found.short:,} series have too few runs" if found.short else ""
    said = f"{changed:,} of {len(found.trends):,} series changed" if found.trends else "no series"
    return f"{said} ({runs}{groups}{short})"


def sentence(trend: Trend, change: Change, screen: Screen) -> str:
    """`RSS peak +1.8 GB since commit abc123 (2026-01-02): 2 GB before ...`."""
    return (
        f"{metric(trend, screen)} {trend.quantity.value} {amount(trend, change)} since "
        f"{since(change.since, screen)}: {change.runs_before:,} runs before with a median of "
        f"{level(trend, change.before)}, {change.runs_after:,} after with "
        f"{level(trend, change.after)}, {numbers.probability(change.p_value)}. "
        f"First: {path(change.since, screen)}"
    )


def metric(trend: Trend, screen: Screen) -> str:
    """`rss`."""
    return screen.show(trend.metric.removesuffix("_bytes"), cells=_CELLS)


def quantity(trend: Trend, screen: Screen) -> str:
    """`rss peak`, `rss growth per step`."""
    if trend.quantity is Quantity.PEAK:
        return f"{metric(trend, screen)} {trend.quantity.value}"
    kind = AxisKind(trend.axis)
    per = wording.axis(Axis(name=kind.value, kind=kind))
    return f"{metric(trend, screen)} {trend.quantity.value} per {per}"


def since(run: Run, screen: Screen) -> str:
    """`commit abc123 (2026-01-02)`."""
    day = screen.show(run.at[:10])
    return f"commit {screen.show(run.commit[:_COMMIT])} ({day})" if run.commit else day


def path(run: Run, screen: Screen) -> str:
    """Where the recording of a run is."""
    return screen.show(run.path, cells=_CELLS)


def amount(trend: Trend, change: Change) -> str:
    """`+1.8 GB`, `+3 MB per step`."""
    value = change.after - change.before
    if trend.quantity is Quantity.PEAK:
        return numbers.signed(value, Unit(trend.unit))
    return rates.brief(value, trend.axis, trend.unit)


def level(trend: Trend, value: float) -> str:
    """A value of the trend."""
    if trend.quantity is Quantity.PEAK:
        return numbers.quantity(value, Unit(trend.unit))
    return rates.brief(value, trend.axis, trend.unit)
