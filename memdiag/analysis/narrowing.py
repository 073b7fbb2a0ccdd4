"""A part of a recording or of its finding, for a closer look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memdiag.errors import UsageError
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import AxisKind, Recording, Series
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Reason, Verdict

_ORDER = (Verdict.LEAK, Verdict.INCONCLUSIVE, Verdict.WARMUP, Verdict.STABLE)
_NAMED = 12


def between_steps(recording: Recording, first: float | None, last: float | None) -> Recording:
    """The samples from step `first` to step `last`, both included; None for no bound.

    Series over another axis are cut at the times of these steps. What belongs to the whole run (how
    it ended, culprits, censuses, thresholds) is left out. Raises UsageError if nothing is left.
    """
    if first is None and last is None:
        return recording
    low, high = -math.inf if first is None else first, math.inf if last is None else last
    over_steps = [one for one in recording.series if one.axis.kind is AxisKind.STEP]
    if not over_steps:
        raise UsageError(
            f"{printable(recording.source)} has no steps", remedy="leave --from-step and --to-step"
        )
    inside = [one.at_s[_within(one.x, low, high)] for one in over_steps if one.at_s is not None]
    times = np.concatenate([np.empty(0), *inside])
    began_s, ended_s = (times.min(), times.max()) if len(times) else (math.inf, -math.inf)
    kept = []
    for one in recording.series:
        if one.axis.kind is AxisKind.STEP:
            kept.append(_masked(one, _within(one.x, low, high)))
        elif one.at_s is not None:
            kept.append(_masked(one, _within(one.at_s, began_s, ended_s)))
    if not any(np.isfinite(one.y).any() for one in kept):
        raise UsageError(
            f"{printable(recording.source)} has no samples between these steps",
            remedy=f"its steps are {_extent(over_steps)}",
        )
    bounds = f"from step {low:g} " * (first is not None) + f"to step {high:g} " * (last is not None)
    return replace(
        recording,
        series=tuple(one for one in kept if len(one.y)),
        notes=(*recording.notes, f"only the samples {bounds}were judged"),
        marks=(),
        ending=None,
        holders=(),
        censuses=(),
        interventions=(),
    )


def chosen(
    found: RecordingFinding, metrics: Sequence[str], processes: Sequence[str]
) -> RecordingFinding:
    """The finding on some series alone, as they were judged beside the others; () for all.

    metrics: names of metrics or columns. processes: labels of processes, or pids in them.
    Raises UsageError if there is no such series.
    """
    if not metrics and not processes:
        return found
    at = [n for n, one in enumerate(found.series) if _is_chosen(one, metrics, processes)]
    if not at:
        names = dict.fromkeys(f"{one.metric} {one.process}".strip() for one in found.series)
        raise UsageError(
            f"{printable(found.source)} has no such series",
            remedy=f"it has {printable(', '.join([*names][:_NAMED]))}"
            + (", ..." if len(names) > _NAMED else ""),
        )
    series = tuple(found.series[n] for n in at)
    kept = {(one.metric, one.process) for one in series}
    part = replace(
        found,
        series=series,
        budgets=tuple(held for held in found.budgets if (held.metric, held.process) in kept),
        first_limit=None,
    )
    if found.decided_by in at:
        return replace(part, decided_by=at.index(found.decided_by))
    decided_by = min(range(len(series)), key=lambda n: _rank(series[n]))
    return replace(
        part,
        verdict=series[decided_by].verdict,
        confidence=series[decided_by].confidence,
        decided_by=decided_by,
        evidence=(),
        capacity=(),
        leaking=None,
        growth=None,
        early_forecast=None,
        cause=None,
        grown=(),
        census=(),
    )


def _rank(finding: Finding) -> tuple[bool, int, float]:
    too_few = finding.reason is Reason.TOO_FEW_SAMPLES
    return too_few, _ORDER.index(finding.verdict), -finding.confidence


def _is_chosen(finding: Finding, metrics: Sequence[str], processes: Sequence[str]) -> bool:
    name = finding.metric.casefold()
    names = {name, name.removesuffix("_bytes"), name.removesuffix("_percent")}
    names.add(finding.column.casefold())
    words = {finding.process, *finding.process.split()}
    return (not metrics or any(one.casefold() in names for one in metrics)) and (
        not processes or any(one in words for one in processes)
    )


def _within(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return (values >= low) & (values <= high)


def _masked(series: Series, kept: np.ndarray) -> Series:
    phases = series.phases
    return replace(
        series,
        x=series.x[kept],
        y=series.y[kept],
        at_s=None if series.at_s is None else series.at_s[kept],
        generation=None if series.generation is None else series.generation[kept],
        phases=None if phases is None else replace(phases, codes=phases.codes[kept]),
    )


def _extent(over_steps: Sequence[Series]) -> str:
    steps = np.concatenate([one.x[np.isfinite(one.x)] for one in over_steps])
    return f"{steps.min():g} to {steps.max():g}" if len(steps) else "unknown"
