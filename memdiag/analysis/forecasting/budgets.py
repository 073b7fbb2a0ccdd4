"""Budgets compared with the findings. A budget that could not be measured is not kept."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memdiag.values.budgets import Budget, BudgetKind, Stretch
from memdiag.values.findings import BudgetFinding, Finding, Interval, RecordingFinding, Standing
from memdiag.values.measurements import AxisKind, Role, Unit

_TREE = "tree"
# What a budget without a metric is for: the memory of the host and that of the device.
_MEMORY = (Role.RESIDENT, Role.DEVICE)
_NO_MEMORY = frozenset({Role.VIRTUAL, Role.CACHE, Role.HOLES, Role.PEAK})
# Metrics that are named where a budget names none of them.
_NAMED = 6
# Fewest readings for a range: heuristic.
_FEWEST = 3
_PLURALS = {
    AxisKind.STEP: "steps",
    AxisKind.EPOCH: "epochs",
    AxisKind.SECONDS: "seconds",
    AxisKind.REQUEST: "requests",
    AxisKind.INDEX: "samples",
    AxisKind.TICK: "samples",
}


def hold(found: RecordingFinding, budgets: Sequence[Budget]) -> RecordingFinding:
    """`found` with every budget held against the series that it is for."""
    held = (one for budget in budgets for one in _held(found, budget))
    return replace(found, budgets=tuple(held))


def _held(found: RecordingFinding, budget: Budget) -> Iterator[BudgetFinding]:
    series = _meant(found.series, budget)
    if not series:
        what = f"nothing called {budget.metric} was" if budget.metric else "no memory was"
        yield _unclear(budget, None, f"{what} recorded{_instead(found.series, budget)}")
    for finding in series:
        yield _against(finding, budget)


def _meant(series: Sequence[Finding], budget: Budget) -> list[Finding]:
    """The series a budget is for; of each metric the whole tree, where it was recorded."""
    if budget.metric:
        chosen = [f for f in series if _is_called(f, budget.metric)]
    else:
        memory = [f for f in series if f.unit is Unit.BYTES and f.role not in _NO_MEMORY]
        chosen = [f for f in memory if f.role in _MEMORY] or memory
    trees = {f.metric for f in chosen if f.process == _TREE}
    return [f for f in chosen if f.process == _TREE or f.metric not in trees]


def _instead(series: Sequence[Finding], budget: Budget) -> str:
    """What a budget may have meant: the metric with a similar name, or those that there are."""
    known = list(dict.fromkeys(_short(finding) for finding in series))
    if not (budget.metric and known):
        return ""
    near = difflib.get_close_matches(budget.metric.casefold(), known, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    more = ", ..." if len(known) > _NAMED else ""
    return f", but {', '.join(known[:_NAMED])}{more}"


def _short(finding: Finding) -> str:
    return finding.metric.removesuffix("_bytes").removesuffix("_percent")


def _is_called(finding: Finding, name: str) -> bool:
    wanted = name.casefold()
    return wanted in {n.casefold() for n in (finding.metric, _short(finding), finding.column)}


def _against(finding: Finding, budget: Budget) -> BudgetFinding:
    if budget.in_bytes and finding.unit is not Unit.BYTES:
        return _unclear(
            budget, finding, "it does not measure memory: write the budget as a plain number"
        )
    match budget.kind:
        case BudgetKind.GROWTH:
            return _growth(finding, budget)
        case BudgetKind.PEAK:
            return _measured(finding, budget, Interval.around(finding.peak_value))
        case BudgetKind.VARIATION:
            return _variation(finding, budget)


def _growth(finding: Finding, budget: Budget) -> BudgetFinding:
    """The rate of the last regime over the budget's stretch, with its interval."""
    stretch = budget.per
    if stretch is None:
        raise AssertionError("a budget of growth has a stretch")
    rate = _rate(finding, stretch)
    if rate is None:
        return _unclear(budget, finding, _why_no_rate(finding, stretch))
    return _measured(finding, budget, rate.scaled(stretch.length))


def _rate(finding: Finding, stretch: Stretch) -> Interval | None:
    plateau = finding.plateau
    if (
        finding.unit is Unit.COUNT
        and _counts(finding, stretch)
        and plateau is not None
        and plateau.low_value == plateau.high_value
    ):
        return Interval.around(0.0)  # things are counted exactly, and there was not one more
    if _counts(finding, stretch):
        return finding.growth_per_x
    if stretch.axis is AxisKind.EPOCH:
        return finding.growth_per_epoch
    return finding.growth_per_s if stretch.axis is AxisKind.SECONDS else None


def _counts(finding: Finding, stretch: Stretch) -> bool:
    """What the stretch is long in is what the series was recorded over."""
    kind = finding.axis.kind
    return (AxisKind.INDEX if kind is AxisKind.TICK else kind) is stretch.axis


def _why_no_rate(finding: Finding, stretch: Stretch) -> str:
    if _counts(finding, stretch) or finding.growth_per_x is None:
        return "the run is too short to measure a rate"
    return _other_axis(finding, stretch)


def _other_axis(finding: Finding, stretch: Stretch) -> str:
    return f"it was recorded over {_PLURALS[finding.axis.kind]}, without {_PLURALS[stretch.axis]}"


def _variation(finding: Finding, budget: Budget) -> BudgetFinding:
    """Highest minus lowest reading from `since` on. Traces keep the extremes of a run."""
    since = budget.since
    readings = (*finding.trace, *finding.tops)
    if since is not None:
        if not _counts(finding, since):
            return _unclear(budget, finding, _other_axis(finding, since))
        start = since.length
        if since.axis is AxisKind.SECONDS:
            start += finding.first_x
        readings = tuple(p for p in readings if p[0] >= start)
    finite = [(x, y) for x, y in readings if math.isfinite(y)]
    values = [y for _, y in finite]
    if len({x for x, _ in finite}) < _FEWEST:
        return _unclear(budget, finding, "there are too few readings in that part of the run")
    return _measured(finding, budget, Interval.around(max(values) - min(values)))


def _measured(finding: Finding, budget: Budget, figure: Interval) -> BudgetFinding:
    """Kept or broken where the whole interval says so."""
    if figure.high <= budget.amount:
        standing, why = Standing.KEPT, ""
    elif figure.low > budget.amount:
        standing, why = Standing.BROKEN, ""
    else:
        twice = 2 * (finding.last_x - finding.first_x)
        longer = f"record a run twice as long, of {twice:,.0f} {_PLURALS[finding.axis.kind]}"
        standing, why = Standing.UNCLEAR, f"the value is too uncertain: {longer}"
    return _result(budget, finding, standing, figure, why)


def _unclear(budget: Budget, finding: Finding | None, why: str) -> BudgetFinding:
    return _result(budget, finding, Standing.UNCLEAR, None, why)


def _result(
    budget: Budget, finding: Finding | None, standing: Standing, figure: Interval | None, why: str
) -> BudgetFinding:
    return BudgetFinding(
        budget=budget,
        standing=standing,
        metric="" if finding is None else finding.metric,
        process="" if finding is None else finding.process,
        unit=None if finding is None else finding.unit,
        measured=figure,
        why=why,
    )
