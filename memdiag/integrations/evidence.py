"""What a repeated test showed, as the report that the command line prints."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
from rich.console import Console

from memdiag.analysis.diagnose import diagnose
from memdiag.integrations.repeating import Meter, Outcome, Settled
from memdiag.report.formats import terminal
from memdiag.values.findings import Diagnosis, Finding, Interval, RecordingFinding
from memdiag.values.measurements import Axis, AxisKind, Recording, Role, Series, Unit
from memdiag.values.verdict import Reason, Verdict

METRICS = {
    Meter.MALLOC: ("malloc_in_use_bytes", Role.IN_USE, Unit.BYTES),
    Meter.BLOCKS: ("python_blocks", Role.OBJECTS, Unit.COUNT),
    Meter.CUDA: ("cuda_allocated_bytes", Role.DEVICE_ALLOCATED, Unit.BYTES),
    Meter.RSS: ("rss_bytes", Role.RESIDENT, Unit.BYTES),
}
_CALLS = Axis(name="call", kind=AxisKind.REQUEST)
# Two rounds of eight parts that all grew: by chance once in 65,536.
_CONFIDENCE = 0.99


def report(settled: Settled, name: str, *, width: int = 80) -> str:
    """The whole report on a test that leaks, as text without colours."""
    out = io.StringIO()
    console = Console(
        file=out, width=width, highlight=False, color_system=None, legacy_windows=False
    )
    console.print(terminal.render(Diagnosis(recordings=(finding(settled, name),)), width=width))
    return out.getvalue()


def finding(settled: Settled, name: str) -> RecordingFinding:
    """The readings as a recording over calls, judged.

    The verdict is the repetition's: it could go on until warm-ups were over, which the diagnosis
    of a recording has to guess.
    """
    meters = list(settled.readings)
    found = diagnose(
        Recording(source=name, series=tuple(_series(settled, meter) for meter in meters))
    )
    if settled.meter is None:
        return found
    metric = METRICS[settled.meter][0]
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


def _series(settled: Settled, meter: Meter) -> Series:
    metric, role, unit = METRICS[meter]
    at, values = zip(*settled.readings[meter], strict=True)
    return Series(
        metric=metric,
        column=metric,
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
    found = replace(found, growth_per_x=rate, need_more=None, plateau=None, onset_x=None)
    if settled.outcome is Outcome.OPEN:
        reason = Reason.STILL_CLIMBING
        return replace(found, verdict=Verdict.INCONCLUSIVE, confidence=0.5, reason=reason)
    reason = Reason.REGULAR_GROWTH if settled.meter is Meter.RSS else Reason.EXACT_METRIC
    return replace(found, verdict=Verdict.LEAK, confidence=_CONFIDENCE, reason=reason)
