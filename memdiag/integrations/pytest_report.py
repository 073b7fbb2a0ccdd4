"""The result of a repeated test, as the report that the command line prints."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
from rich.console import Console

from memdiag.analysis.diagnose import diagnose
from memdiag.integrations.repeat_until_settled import Metric, Settled
from memdiag.report.formats import terminal
from memdiag.values.findings import Diagnosis, Finding, Interval, RecordingFinding
from memdiag.values.measurements import Axis, AxisKind, Recording, Role, Series, Unit
from memdiag.values.verdict import Reason, Verdict

METRICS = {
    Metric.MALLOC: ("malloc_in_use_bytes", Role.IN_USE, Unit.BYTES),
    Metric.BLOCKS: ("python_blocks", Role.OBJECTS, Unit.COUNT),
    Metric.CUDA: ("cuda_allocated_bytes", Role.DEVICE_ALLOCATED, Unit.BYTES),
    Metric.RSS: ("rss_bytes", Role.RESIDENT, Unit.BYTES),
}
_CALLS = Axis(name="call", kind=AxisKind.REQUEST)
# Two rounds of eight parts that all grew: by chance 1 in 65,536.
_CONFIDENCE = 0.99


def report(settled: Settled, name: str, *, width: int = 80) -> str:
    """The whole report on a test that leaks, as text without colors."""
    out = io.StringIO()
    console = Console(
        file=out, width=width, highlight=False, color_system=None, legacy_windows=False
    )
    console.print(terminal.render(Diagnosis(recordings=(finding(settled, name),)), width=width))
    return out.getvalue()


def finding(settled: Settled, name: str) -> RecordingFinding:
    """The finding on the readings as a recording over calls.

    The verdict is the repetition's, which could continue until warm-ups were over; the diagnosis of
    a recording has to estimate that.
    """
    metrics = list(settled.readings)
    found = diagnose(
        Recording(source=name, series=tuple(_series(settled, metric) for metric in metrics))
    )
    if settled.metric is None:
        return found
    metric = METRICS[settled.metric][0]
    at = next(n for n, one in enumerate(found.series) if one.metric == metric)
    series = list(found.series)
    series[at] = _judged(series[at], settled)
    return replace(
        found,
        verdict=series[at].verdict,
        confidence=series[at].confidence,
        series=tuple(series),
        decided_by=at,
        evidence=(),
    )


def _series(settled: Settled, metric: Metric) -> Series:
    name, role, unit = METRICS[metric]
    at, values = zip(*settled.readings[metric], strict=True)
    return Series(
        metric=name,
        column=name,
        role=role,
        unit=unit,
        axis=_CALLS,
        x=np.array(at, dtype=float),
        y=np.array(values, dtype=float),
    )


def _judged(found: Finding, settled: Settled) -> Finding:
    growth = settled.growth_per_call
    rate = found.growth_per_x
    if rate is None or not rate.low <= growth <= rate.high:
        rate = Interval(value=growth, low=growth, high=growth)
    reason = Reason.REGULAR_GROWTH if settled.metric is Metric.RSS else Reason.EXACT_METRIC
    is_open = settled.verdict is Verdict.INCONCLUSIVE
    return replace(
        found,
        verdict=settled.verdict,
        confidence=0.5 if is_open else _CONFIDENCE,
        reason=Reason.STILL_CLIMBING if is_open else reason,
        growth_per_x=rate,
        need_more=None,
        plateau=None,
        onset_x=None,
    )
