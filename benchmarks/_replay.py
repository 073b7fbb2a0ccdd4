"""Recordings given to the live verdict sample by sample, beside the verdict on what was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from memdiag.analysis.diagnose import judge
from memdiag.analysis.live.sequential import LiveVerdict
from memdiag.analysis.policy import DEFAULT, Policy
from memdiag.cli.measurement.live_verdict import ConfirmedVerdict
from memdiag.values.findings import Finding
from memdiag.values.measurements import Axis, AxisKind, Recording, Sample, Series, Unit
from memdiag.values.metrics import METRIC_ROLES
from memdiag.values.verdict import Verdict

INTERVAL_S = 0.1  # between samples where a recording has no clock: the default of `memdiag run`
CLOCKS = (AxisKind.SECONDS, AxisKind.TICK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A moment at which the live verdict is LEAK, and the verdict on a recording until then.

    is_shown: it is confirmed, so `memdiag run` shows it and acts on it.
    """

    at_s: float
    is_shown: bool
    final: Verdict


def as_measured(recording: Recording) -> Recording:
    """The recording as memdiag would have made it: its own metrics, over steps or seconds."""
    out: dict[tuple[str, str], Series] = {}
    for series in recording.series:
        metric = _metric(series)
        x = np.asarray(series.x, dtype=np.float64)
        placed = np.isfinite(x)
        if metric is None or series.falling or (np.diff(x[placed]) < 0).any():
            continue
        at_s = series.at_s
        if series.axis.kind in CLOCKS:
            at_s, axis = x, Axis(name="at_s", kind=AxisKind.SECONDS)
        else:
            axis = Axis(name="step", kind=AxisKind.STEP)
        if at_s is None or not np.isfinite(at_s).all() or (np.diff(at_s) < 0).any():
            at_s = INTERVAL_S * np.arange(len(x), dtype=np.float64)
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


class Replayed:
    """A recording that is given to the live verdict, sample by sample.

    The rules of the report answer at once. In `memdiag run` they take a moment, in a thread, and a
    leak is shown that moment later.
    """

    def __init__(self, recording: Recording, policy: Policy) -> None:
        self.recording, self.at_s = as_measured(recording), 0.0
        self.live = LiveVerdict(policy)
        self._shown = ConfirmedVerdict(
            self.live, self.final, flush=lambda: None, start=self._answer_at_once
        )

    def final(self) -> Verdict:
        """The verdict on a recording of the samples so far."""
        return judge(until(self.recording, self.at_s)).verdict

    @staticmethod
    def _answer_at_once(call: Callable[[], None]) -> Callable[[], bool]:
        call()
        return lambda: False

    def looks(self) -> Iterator[tuple[Finding | None, bool]]:
        """At each moment: the live verdict, and whether a leak is shown."""
        given = list(samples(self.recording))
        for sample, following in zip_longest(given, given[1:]):
            self._shown.add(sample)
            if following is None or following.at_s != sample.at_s:
                self.at_s = sample.at_s
                shown = self._shown.finding()
                yield self.live.finding(), shown is not None and shown.verdict is Verdict.LEAK


def replay(recording: Recording, policy: Policy = DEFAULT) -> Iterator[Said]:
    """Each time that the live verdict finds a leak anew."""
    run, before = Replayed(recording, policy), None
    for found, is_shown in run.looks():
        if found is not None and found is not before and found.verdict is Verdict.LEAK:
            yield Said(at_s=run.at_s, is_shown=is_shown, final=run.final())
        before = found


def contrary(recordings: Iterator[Recording], policy: Policy = DEFAULT) -> Counter[str]:
    """How often LEAK was found live and shown, and how often the verdict then was another."""
    said: Counter[str] = Counter()
    for recording in recordings:
        for one in replay(recording, policy):
            denied = one.final is not Verdict.LEAK
            said.update(found=1, denied=denied)
            said.update(shown=one.is_shown, shown_denied=one.is_shown and denied)
    return said
