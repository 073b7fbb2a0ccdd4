"""Recordings given to the live verdict sample by sample, beside the verdict on what was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from memdiag.analysis.diagnose import judge
from memdiag.analysis.live.sequential import LiveVerdict
from memdiag.analysis.policy import DEFAULT, Policy
from memdiag.recording.native.schema import METRIC_ROLES
from memdiag.values.measurements import Axis, AxisKind, Recording, Sample, Series, Unit
from memdiag.values.verdict import Verdict

INTERVAL_S = 0.1  # between samples where a recording has no clock: the default of `memdiag run`
CLOCKS = (AxisKind.SECONDS, AxisKind.TICK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A moment at which the live verdict is LEAK, and the verdict on a recording until then."""

    at_s: float
    final: Verdict


def as_measured(recording: Recording) -> Recording:
    """The recording as memdiag would have made it: its own metrics, over steps or seconds."""
    out: dict[tuple[str, str], Series] = {}
    for series in recording.series:
        metric = _metric(series)
        x = np.asarray(series.x, dtype=float)
        placed = np.isfinite(x)
        if metric is None or series.falling or (np.diff(x[placed]) < 0).any():
            continue
        at_s = series.at_s
        if series.axis.kind in CLOCKS:
            at_s, axis = x, Axis(name="at_s", kind=AxisKind.SECONDS)
        else:
            axis = Axis(name="step", kind=AxisKind.STEP)
        if at_s is None or not np.isfinite(at_s).all() or (np.diff(at_s) < 0).any():
            at_s = INTERVAL_S * np.arange(len(x))
        known = Series(
            metric=metric,
            column=metric,
            role=METRIC_ROLES[metric],
            unit=Unit.BYTES if metric.endswith("_bytes") else Unit.COUNT,
            axis=axis,
            x=x,
            y=series.y,
            process=series.process or "main",
            at_s=at_s,
            generation=series.generation,
            is_rank=series.is_rank,
        )
        out.setdefault((known.process, metric), known)
    return Recording(source=recording.source, series=tuple(out.values()))


def _metric(series: Series) -> str | None:
    if series.metric in METRIC_ROLES:
        return series.metric
    return next((name for name, role in METRIC_ROLES.items() if role is series.role), None)


def samples(recording: Recording) -> Iterator[Sample]:
    """One of each process at each moment, in the order of time."""
    rows: dict[tuple[float, str], Sample] = {}
    processes = list(dict.fromkeys(s.process for s in recording.series))
    for series in recording.series:
        steps = series.axis.kind is AxisKind.STEP
        assert series.at_s is not None
        for n, (x, y, at_s) in enumerate(zip(series.x, series.y, series.at_s, strict=True)):
            generation = 0 if series.generation is None else int(series.generation[n])
            sample = rows.setdefault(
                (float(at_s), series.process),
                Sample(
                    at_s=float(at_s),
                    pid=1000 * (1 + processes.index(series.process)) + generation,
                    process=series.process,
                    readings={},
                    step=float(x) if steps and np.isfinite(x) else None,  # type: ignore[arg-type]
                ),
            )
            if np.isfinite(y):
                sample.readings[series.metric] = float(y)
    yield from (rows[key] for key in sorted(rows))


def until(recording: Recording, at_s: float) -> Recording:
    """What had been recorded by then."""
    cut = []
    for series in recording.series:
        assert series.at_s is not None
        kept = series.at_s <= at_s
        generation = None if series.generation is None else series.generation[kept]
        if kept.any():
            cut.append(
                replace(
                    series,
                    x=series.x[kept],
                    y=series.y[kept],
                    at_s=series.at_s[kept],
                    generation=generation,
                )
            )
    return replace(recording, series=tuple(cut))


def replay(recording: Recording, policy: Policy = DEFAULT) -> Iterator[Said]:
    """Each time that the live verdict is LEAK and was made anew."""
    live, before = LiveVerdict(policy), None
    recording = as_measured(recording)
    given = list(samples(recording))
    for n, sample in enumerate(given):
        live.add(sample)
        if n + 1 < len(given) and given[n + 1].at_s == sample.at_s:
            continue
        now = live.finding()
        if now is not None and now is not before and now.verdict is Verdict.LEAK:
            final = judge(until(recording, sample.at_s)).verdict
            yield Said(at_s=sample.at_s, final=final)
        before = now


def contrary(recordings: Iterator[Recording], policy: Policy = DEFAULT) -> Counter[str]:
    """How often LEAK was said, and beside which verdict on the recording."""
    said: Counter[str] = Counter()
    for recording in recordings:
        for one in replay(recording, policy):
            said[one.final.name] += 1
    return said
