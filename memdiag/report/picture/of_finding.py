"""The picture of a finding: which curves, marks and limits it shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from memdiag.report.picture.model import (
    ConePoint,
    Curve,
    Jump,
    Level,
    Mark,
    MarkKind,
    Picture,
    Points,
)
from memdiag.report.sections import headline, series_table
from memdiag.report.text import numbers, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import AxisKind
from memdiag.values.readings import PhaseSpan
from memdiag.values.verdict import Verdict

# A stable series is shown on at least this part of its level, so that noise does not look like
# growth.
_STABLE_SPAN = 0.2
# A limit above the peak by more than this factor is not shown: it would flatten the curve.
_LIMIT_IN_SIGHT = 1.5
# Smaller changes between two segments, as a part of the range of the readings, are not visible.
_VISIBLE_JUMP = 0.03
# The forecast is drawn for this part of the run beyond its end.
_AHEAD = 0.25
_CULPRITS = 3
_PHASE_CELLS = 40
_GROWING = frozenset({Verdict.LEAK, Verdict.INCONCLUSIVE})


def of_finding(finding: Finding, screen: Screen) -> Picture:
    """The picture of one series by itself."""
    return _picture((finding,), (_curve(finding, finding.trace, screen),), screen)


def of_recording(found: RecordingFinding, screen: Screen) -> tuple[Picture, ...]:
    """A picture for each unit and axis of the series that a report shows; the one with the deciding
    series first.

    The curves are those of the report's table of series, in its order.
    """
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in series_table.ranked(found):
        groups.setdefault((finding.unit, finding.axis), []).append(finding)
    return tuple(_of_group(group, found, screen) for group in groups.values())


def of_deciding(found: RecordingFinding, screen: Screen) -> Picture | None:
    """The picture of the deciding series, with the same metric of other processes behind it; None
    if nothing was measured."""
    deciding = found.deciding
    if deciding is None:
        return None
    alike = [
        finding
        for finding in series_table.ranked(found)
        if (finding.metric, finding.axis) == (deciding.metric, deciding.axis)
    ]
    return _of_group(alike, found, screen)


def _of_group(group: Sequence[Finding], found: RecordingFinding, screen: Screen) -> Picture:
    readings = found.readings
    points: dict[int, Points] = {}
    if readings is not None:
        points = {
            id(finding): readings
            for finding, readings in zip(found.series, readings.series, strict=True)
        }
    curves = []
    for finding in group:
        curve = _curve(finding, points.get(id(finding), finding.trace), screen)
        if finding is found.deciding:
            marks = (*curve.marks, *_culprits(found, finding, screen))
            curve = replace(curve, marks=marks)
        curves.append(curve)
    picture = _picture(group, tuple(curves), screen)
    deciding = found.deciding
    if deciding is None or deciding.axis != group[0].axis:
        return picture
    return replace(
        picture,
        title=f"{found.verdict.name} {headline.summary(found)}",
        subject=headline.subject(found, screen),
        phases=() if readings is None else _phases(readings.phases, screen),
    )


def _phases(spans: Sequence[PhaseSpan], screen: Screen) -> tuple[PhaseSpan, ...]:
    """The phases with printable names."""
    shown = {span.phase: screen.show(span.phase, cells=_PHASE_CELLS) for span in spans}
    return tuple(replace(span, phase=shown[span.phase]) for span in spans)


def _picture(group: Sequence[Finding], curves: tuple[Curve, ...], screen: Screen) -> Picture:
    first = group[0]
    stable = first.verdict in {Verdict.STABLE, Verdict.WARMUP}
    return Picture(
        unit=first.unit,
        axis=first.axis.kind,
        axis_word=wording.axis(first.axis),
        curves=curves,
        levels=tuple(_limits(group, screen)),
        least_span=_STABLE_SPAN * abs(first.peak_value) if stable else 0.0,
    )


def _curve(finding: Finding, readings: Points, screen: Screen) -> Curve:
    return Curve(
        name=series_names.series(finding, screen),
        metric=finding.metric,
        process=series_names.process(finding.process, screen),
        verdict=finding.verdict,
        points=finding.trace,
        tops=finding.tops if headline.is_higher_between(finding) else (),
        readings=readings,
        segments=finding.segments,
        jumps=tuple(_jumps(finding)),
        marks=tuple(_marks(finding)),
        plateau=finding.plateau if finding.verdict is not Verdict.STABLE else None,
        cone=_cone(finding),
    )


def _marks(finding: Finding) -> Iterator[Mark]:
    marks = []
    if finding.plateau is not None and finding.verdict is not Verdict.STABLE:
        since = finding.plateau.since_x.value
        label = f"plateau since {series_names.place(finding, since)}"
        marks.append(Mark(x=since, label=label, kind=MarkKind.PLATEAU))
    if finding.onset_x is not None:
        onset = finding.onset_x.value
        label = f"onset, {series_names.place(finding, onset)}"
        marks.append(Mark(x=onset, label=label, kind=MarkKind.ONSET))
    return (mark for mark in marks if finding.first_x <= mark.x <= finding.last_x)


def _culprits(found: RecordingFinding, finding: Finding, screen: Screen) -> Iterator[Mark]:
    """The places that keep the memory, where they began to grow, and crossed thresholds."""
    culprits = () if found.cause is None else found.cause.culprits[:_CULPRITS]
    if finding.axis.kind is AxisKind.STEP:
        for culprit in culprits:
            if culprit.since_step is not None and culprit.file is not None:
                name = f"{screen.show(Path(culprit.file).name, cells=40)}:{culprit.line}"
                since = max(float(culprit.since_step), finding.first_x)
                yield Mark(x=since, label=name, kind=MarkKind.CULPRIT)
    for mark in found.marks:
        x = mark.step if finding.axis.kind is AxisKind.STEP else mark.at_s
        is_placed = finding.axis.kind in {AxisKind.STEP, AxisKind.SECONDS} and x is not None
        if is_placed and (mark.metric, mark.process) == (finding.metric, finding.process):
            label = screen.show(mark.threshold, cells=40)
            yield Mark(x=float(x or 0), label=label, kind=MarkKind.THRESHOLD)


def _limits(group: Sequence[Finding], screen: Screen) -> Iterator[Level]:
    """The limits that a series reaches and that are in sight, each once."""
    highest = max(*(finding.peak_value for finding in group), 0.0) * _LIMIT_IN_SIGHT
    hits = (hit for finding in group for hit in finding.limit_hits)
    shown = {(hit.limit, hit.limit_bytes): hit for hit in hits if hit.limit_bytes <= highest}
    for hit in shown.values():
        label = f"{screen.show(hit.limit, cells=24)}, {numbers.size(hit.limit_bytes)}"
        yield Level(value=float(hit.limit_bytes), label=label)


def _jumps(finding: Finding) -> Iterator[Jump]:
    values = [value for _, value in finding.trace]
    least = _VISIBLE_JUMP * (max(values) - min(values)) if values else 0.0
    for before, after in pairwise(finding.segments):
        if abs(after.start_value - before.end_value) > least:
            middle = (before.end_x + after.start_x) / 2
            yield Jump(x=middle, before_value=before.end_value, after_value=after.start_value)


def _cone(finding: Finding) -> tuple[ConePoint, ...]:
    """From the end of the last segment towards the first forecast, as far as it is drawn."""
    if finding.verdict not in _GROWING or not finding.forecasts or not finding.segments:
        return ()
    ahead, segment = finding.forecasts[0], finding.segments[-1]
    start, length = segment.end_x, ahead.at_x - segment.end_x
    end = finding.last_x + _AHEAD * (finding.last_x - finding.first_x)
    if not (length > 0 and math.isfinite(ahead.value.low) and math.isfinite(ahead.value.high)):
        return ()
    part = min(1.0, (end - start) / length)
    first = segment.end_value

    def towards(value: float) -> float:
        return first + part * (value - first)

    return (
        ConePoint(x=start, value=first, low=first, high=first),
        ConePoint(
            x=start + part * length,
            value=towards(ahead.value.value),
            low=towards(ahead.value.low),
            high=towards(ahead.value.high),
        ),
    )
