"""Changes between runs, as text."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from memdiag.report.text import numbers, rates, text_layout
from memdiag.report.text.screen import Screen
from memdiag.values.history import Change, History, Quantity, Trend
from memdiag.values.measurements import Unit

_COMMIT, _CELLS = 12, 40


def render(found: History, *, width: int, ascii_only: bool = False) -> Group:
    """A paragraph for each series that has changed, and one for the others."""
    screen = Screen(width=width, ascii_only=ascii_only)
    stroke = "-" if ascii_only else "─"
    lines = [text_layout.rule("memdiag history", screen.measure, stroke)]
    changed = [trend for trend in found.trends if trend.changes]
    for trend in changed:
        lead = " ".join(filter(None, (trend.group and f"{screen.show(trend.group)}:",)))
        for change in trend.changes:
            lines += text_layout.paragraph(_said(trend, change, screen), screen.measure, lead=lead)
    if changed:
        lines.append(Text())
    return Group(*lines, overall(found))


def overall(found: History) -> Text:
    """The last line."""
    changed = sum(bool(trend.changes) for trend in found.trends)
    groups = f" in {found.groups:,} groups" if found.groups > 1 else ""
    runs = "1 run" if found.runs == 1 else f"{found.runs:,} runs"
    short = f"; {found.short:,} series have too few runs" if found.short else ""
    said = f"{changed:,} of {len(found.trends):,} series changed" if found.trends else "no series"
    return Text(f"memdiag: {said} ({runs}{groups}{short})")


def _said(trend: Trend, change: Change, screen: Screen) -> str:
    """`RSS peak +1.8 GB since commit abc123 (2026-01-02): 2 GB before ...`."""
    metric = screen.show(trend.metric.removesuffix("_bytes"), cells=_CELLS)
    run = change.since
    day = run.at[:10]
    since = f"commit {screen.show(run.commit[:_COMMIT])} ({day})" if run.commit else day
    return (
        f"{metric} {trend.quantity.value} {_amount(trend, change.after - change.before)} since "
        f"{since}: {change.runs_before:,} runs before with a median of "
        f"{_level(trend, change.before)}, {change.runs_after:,} after with "
        f"{_level(trend, change.after)}, {numbers.probability(change.p_value)}. "
        f"First: {screen.show(run.path, cells=_CELLS)}"
    )


def _amount(trend: Trend, value: float) -> str:
    if trend.quantity is Quantity.PEAK:
        return numbers.signed(value, Unit(trend.unit))
    return rates.brief(value, trend.axis, trend.unit)


def _level(trend: Trend, value: float) -> str:
    if trend.quantity is Quantity.PEAK:
        return numbers.quantity(value, Unit(trend.unit))
    return rates.brief(value, trend.axis, trend.unit)
