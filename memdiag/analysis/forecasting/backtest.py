"""Backtest of a run that ended out of memory: what its first half predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from memdiag.values.capacity import EarlyForecast
from memdiag.values.findings import Finding
from memdiag.values.measurements import Cause, Ending, Limit, Recording, Role, Series
from memdiag.values.verdict import Verdict

# Which memory ran out.
_ROLES = {Cause.OOM_KILLER: Role.RESIDENT, Cause.DEVICE_MEMORY: Role.DEVICE}
_NAME = "what ended it"
_PART = 0.5
_FEWEST_SAMPLES = 4
# Below this part of the limit something else ended it: a cap of the framework's own, other tenants,
# memory that this series does not count. Heuristic.
_NEAR = 0.75


def backtest(
    recording: Recording,
    findings: Sequence[tuple[int, Series]],
    judge: Callable[[Series, Recording], Finding | None],
) -> EarlyForecast | None:
    """What the first half of the series that ran out predicts for the limit that ended the run.

    findings: the series that were judged, with their places in the finding. judge: judges one
    series of a recording, by nothing but what it is given.
    None where that limit did not end it, or where the half does not grow towards it.
    """
    ending = recording.ending
    chosen = _series(ending, findings)
    if ending is None or ending.cause is None or ending.limit_bytes is None or chosen is None:
        return None
    place, series = chosen
    if _peak(series) < _NEAR * ending.limit_bytes:
        return None
    half = _first_part(series)
    if half is None:
        return None
    limit = Limit(name=_NAME, value_bytes=ending.limit_bytes, roles=frozenset({series.role}))
    seen = judge(half, replace(recording, limits=(limit,), ending=None, planned_x=None))
    if seen is None or seen.verdict not in {Verdict.LEAK, Verdict.INCONCLUSIVE}:
        return None
    if not seen.limit_hits or seen.growth_per_x is None or seen.growth_per_x.low <= 0:
        return None
    hit = seen.limit_hits[0].at_x
    return EarlyForecast(
        series=place,
        limit_bytes=ending.limit_bytes,
        seen_until_x=seen.last_x,
        at_x=hit.value,
        low_x=hit.low,
        high_x=hit.high,
        confidence=seen.confidence if seen.verdict is Verdict.LEAK else None,
    )


def _series(
    ending: Ending | None, findings: Sequence[tuple[int, Series]]
) -> tuple[int, Series] | None:
    """The memory that ran out: of all processes together, where that was recorded."""
    role = None if ending is None or ending.cause is None else _ROLES.get(ending.cause)
    fitting = [one for one in findings if one[1].role is role]
    return max(fitting, key=lambda one: (one[1].process == "tree", _peak(one[1])), default=None)


def _peak(series: Series) -> float:
    readings = series.y[np.isfinite(series.y)]
    return float(readings.max()) if readings.size else 0.0


def _first_part(series: Series) -> Series | None:
    """The samples of the first half of the axis; None where they are too few to say anything."""
    x = series.x[np.isfinite(series.x) & np.isfinite(series.y)]
    if x.size < _FEWEST_SAMPLES:
        return None
    rows = series.x <= x.min() + _PART * (x.max() - x.min())  # never where it is not a number
    phases = series.phases
    return replace(
        series,
        x=series.x[rows],
        y=series.y[rows],
        at_s=None if series.at_s is None else series.at_s[rows],
        generation=None if series.generation is None else series.generation[rows],
        phases=None if phases is None else replace(phases, codes=phases.codes[rows]),
    )
