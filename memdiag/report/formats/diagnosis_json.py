"""A Diagnosis as plain JSON values, described by `schema.json` beside this file.

Every number is raw, in base units, and says its unit in its key: what is measured in the metric's
unit ends in `_bytes`, `_count` or `_percent`, what lies on the axis in `_step`, `_epoch`, `_s`,
`_request` or `_index`, and a rate in both (`growth_bytes_per_step`). A value that is unknown, not
finite or does not apply is null, never absent and never NaN.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib import resources
from typing import Any

from memdiag.report.text import argument_text, numbers
from memdiag.values.budgets import Stretch
from memdiag.values.capacity import Capacity
from memdiag.values.findings import (
    BudgetFinding,
    Diagnosis,
    Evidence,
    Failure,
    Finding,
    Forecast,
    Interval,
    Leaking,
    LimitHit,
    NeedMore,
    PhaseGrowth,
    Plateau,
    RecordingFinding,
    RecurringGrowth,
    Segment,
)
from memdiag.values.measurements import Axis, AxisKind, Ending, Mark, Missing, Unit
from memdiag.values.verdict import Argument, Side

SCHEMA_VERSION = 1

Values = dict[str, Any]


# How every report begins, by which one is known again.
BEGINNING = '{\n  "schema_version": '


def document(diagnosis: Diagnosis, exit_code: int) -> Values:
    """The whole answer of one command, in the shape of `schema.json`. The order is given."""
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": diagnosis.verdict.value,
        "exit_code": int(exit_code),
        "recordings": [_recording(found) for found in diagnosis.recordings],
        "failures": [failure(one) for one in diagnosis.failures],
    }


def text(diagnosis: Diagnosis, exit_code: int) -> str:
    """The document as text: what stdout and files get."""
    return dumps(document(diagnosis, exit_code))


def dumps(values: Mapping[str, Any]) -> str:
    """`document` as text, ASCII only: names from outside cannot reach the terminal as escapes."""
    return json.dumps(values, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def schema_text() -> str:
    """The JSON Schema (2020-12) of `document`, as shipped."""
    return resources.files("memdiag.report").joinpath("schema.json").read_text(encoding="utf-8")


def _recording(found: RecordingFinding) -> Values:
    return {
        "source": found.source,
        "verdict": found.verdict.value,
        "confidence": number(found.confidence),
        "decided_by": found.decided_by,
        "leaking": None if found.leaking is None else _leaking(found.leaking),
        "series": [_series(finding) for finding in found.series],
        "evidence": [_evidence(evidence) for evidence in found.evidence],
        "missing": [_missing(missing) for missing in found.missing],
        "ending": None if found.ending is None else _ending(found.ending),
        "budgets": [_budget(held) for held in found.budgets],
        "marks": [_mark(mark) for mark in found.marks],
        "first_limit": _first_limit(found),
        "foretold": _foretold(found),
        "capacity": [_capacity(room, found) for room in found.capacity],
        "notes": list(found.notes),
    }


def _leaking(leaking: Leaking) -> Values:
    return {"kind": leaking.kind.value, "share": number(leaking.share)}


def _series(finding: Finding) -> Values:
    unit, axis = finding.unit.value, axis_key(finding.axis)
    return {
        "metric": finding.metric,
        "column": finding.column,
        "process": finding.process,
        "role": finding.role.value,
        "unit": unit,
        "axis": axis,
        "axis_name": finding.axis.name,
        "verdict": finding.verdict.value,
        "confidence": number(finding.confidence),
        "reason": finding.reason.value,
        "samples": finding.samples,
        "dropped_start_samples": finding.dropped_start,
        "dropped_end_samples": finding.dropped_end,
        "restarts": finding.restarts,
        "peaks_grow": finding.peaks_grow,
        f"first_{axis}": number(finding.first_x),
        f"last_{axis}": number(finding.last_x),
        f"start_{unit}": number(finding.start_value),
        f"latest_{unit}": number(finding.latest_value),
        f"peak_{unit}": number(finding.peak_value),
        **_growth(finding),
        f"onset_{axis}": interval(finding.onset_x),
        "plateau": None if finding.plateau is None else _plateau(finding.plateau, unit, axis),
        "segments": [_segment(segment, unit, axis) for segment in finding.segments],
        "forecasts": [_forecast(forecast, unit, axis) for forecast in finding.forecasts],
        "limits": [_limit(hit, axis) for hit in finding.limit_hits],
        "needs": None if finding.need_more is None else _needs(finding.need_more, axis),
        "phases": [_phase(phase, unit) for phase in finding.phases],
        "recurring": None if finding.recurring is None else _recurring(finding.recurring, unit),
        "trail": [_argument(argument, finding) for argument in finding.trail],
    }


def _argument(argument: Argument, finding: Finding) -> Values:
    """`verdict` and `reason` are null where nothing was argued."""
    argued = argument.side is not Side.NOT_CONSIDERED
    unit, axis = finding.unit.value, axis_key(finding.axis)
    endings = {"y": unit, "x": axis, "rate": f"{unit}_per_{axis}", "p": "p_value"}
    figures = {}
    for key, value in argument.numbers.items():
        name, _, ending = key.rpartition("_")
        figures[f"{name}_{endings[ending]}" if ending in endings else key] = number(value)
    return {
        "check": argument.check,
        "side": argument.side.value,
        "window": argument.window,
        "look": argument.look,
        "against": argument.against,
        "text": argument_text.sentence(argument, finding),
        "numbers": figures,
        "verdict": argument.verdict.value if argued else None,
        "reason": argument.reason.value if argued else None,
        "decisive": argument is argument_text.decisive(finding),
    }


def axis_key(axis: Axis) -> str:
    """The axis's unit as it stands in keys; seconds take their symbol, as everywhere."""
    return axis_key_of(axis.kind)


def axis_key_of(kind: AxisKind) -> str:
    """The same by the axis's kind."""
    if kind is AxisKind.TICK:
        kind = AxisKind.INDEX  # whose samples they are is told by `axis_name`
    return "s" if kind is AxisKind.SECONDS else kind.value


def _growth(finding: Finding) -> Values:
    """Rate per unit of the axis, per second and per epoch; one key where two are the same."""
    unit, axis = finding.unit.value, axis_key(finding.axis)
    per_s = finding.growth_per_s
    if axis == "s" and per_s is None:
        per_s = finding.growth_per_x
    rates = {f"growth_{unit}_per_{axis}": interval(finding.growth_per_x)}
    rates |= {f"growth_{unit}_per_s": interval(per_s)}
    return {f"growth_{unit}_per_epoch": interval(finding.growth_per_epoch)} | rates


def _plateau(plateau: Plateau, unit: str, axis: str) -> Values:
    return {
        f"since_{axis}": interval(plateau.since_x),
        f"lasted_{axis}": number(plateau.lasted_x),
        f"low_{unit}": number(plateau.low_value),
        f"high_{unit}": number(plateau.high_value),
    }


def _segment(segment: Segment, unit: str, axis: str) -> Values:
    return {
        f"start_{axis}": number(segment.start_x),
        f"end_{axis}": number(segment.end_x),
        f"start_{unit}": number(segment.start_value),
        f"end_{unit}": number(segment.end_value),
        f"slope_{unit}_per_{axis}": interval(segment.slope_per_x),
        "samples": segment.samples,
    }


def _forecast(forecast: Forecast, unit: str, axis: str) -> Values:
    return {f"at_{axis}": number(forecast.at_x), f"value_{unit}": interval(forecast.value)}


def _limit(hit: LimitHit, axis: str) -> Values:
    """`in_s` is the time left; it keeps its name on an axis of seconds, where `at_s` differs."""
    return {
        "limit": hit.limit,
        "limit_bytes": hit.limit_bytes,
        f"at_{axis}": interval(hit.at_x),
        "in_s": number(hit.in_s),
    }


def _first_limit(found: RecordingFinding) -> Values | None:
    first = found.first_limit
    if first is None:
        return None
    return {
        "limit": first.limit,
        "limit_bytes": first.limit_bytes,
        "series": first.series,
        f"at_{axis_key(found.series[first.series].axis)}": interval(first.at_x),
        "left_s": interval(first.left_s),
        "confidence": number(first.confidence),
        "rival": first.rival,
    }


def _foretold(found: RecordingFinding) -> Values | None:
    told = found.foretold
    if told is None:
        return None
    axis = axis_key(found.series[told.series].axis)
    return {
        "series": told.series,
        "limit_bytes": told.limit_bytes,
        f"seen_until_{axis}": number(told.seen_until_x),
        f"at_{axis}": {
            "value": number(told.at_x),
            "low": number(told.low_x),
            "high": number(told.high_x),
        },
        "confidence": number(told.confidence),
    }


def _capacity(room: Capacity, found: RecordingFinding) -> Values:
    finding = found.series[room.series]
    plateau = finding.plateau
    return {
        "memory": room.memory.value,
        "series": room.series,
        "bounded": room.is_bounded,
        "peak_bytes": number(room.peak_bytes),
        "plateau_bytes": None
        if plateau is None
        else {"low": number(plateau.low_value), "high": number(plateau.high_value)},
        f"until_{axis_key(finding.axis)}": number(room.until_x),
        "needs_bytes": room.needs_bytes,
        "comfortable_bytes": room.comfortable_bytes,
        "limit": room.limit,
        "limit_bytes": room.limit_bytes,
        "headroom_bytes": number(room.headroom_bytes),
    }


def _mark(mark: Mark) -> Values:
    return {
        "level": mark.level.value,
        "threshold": mark.threshold,
        "threshold_bytes": mark.threshold_bytes,
        "limit": mark.limit,
        "metric": mark.metric,
        "process": mark.process,
        "value_bytes": mark.value_bytes,
        "at_s": number(mark.at_s),
        "step": mark.step,
        "phase": mark.phase,
    }


def _needs(needs: NeedMore, axis: str) -> Values:
    more_s = needs.more_s
    if axis == "s" and more_s is None:
        more_s = needs.more_x
    decidable = needs.more_x is not None or needs.more_s is not None
    amounts = {f"more_{axis}": number(needs.more_x)} | {"more_s": number(more_s)}
    return {"decidable": decidable, **amounts, "why": needs.why}


def _phase(phase: PhaseGrowth, unit: str) -> Values:
    return {
        "phase": phase.phase,
        "events": phase.events,
        "growing_events": phase.growing_events,
        f"growth_{unit}_per_event": interval(phase.growth_per_event),
        "spread": number(phase.spread),
        "share": number(phase.share),
        "p_value": number(phase.p_value),
        "blamed": phase.blamed,
        "matches": "" if phase.match is None else numbers.multiple(phase.match),
    }


def _recurring(growth: RecurringGrowth, unit: str) -> Values:
    return {
        "phases": list(growth.phases),
        "events": growth.events,
        f"growth_{unit}_per_event": number(growth.growth_per_event),
        f"least_{unit}": number(growth.least),
        f"most_{unit}": number(growth.most),
        "spread": number(growth.spread),
        "matches": "" if growth.match is None else numbers.multiple(growth.match),
    }


def _evidence(evidence: Evidence) -> Values:
    return {
        "kind": evidence.kind.value,
        "subject": evidence.subject,
        "against": evidence.against,
        "supports": None if evidence.supports is None else evidence.supports.value,
    }


def _budget(held: BudgetFinding) -> Values:
    """Figure and allowance share a unit: that of the series, or bytes as the budget was written."""
    budget = held.budget
    unit = held.unit or (Unit.BYTES if budget.in_bytes else Unit.COUNT)
    return {
        "budget": budget.text,
        "kind": budget.kind.value,
        "metric": held.metric,
        "process": held.process,
        "standing": held.standing.value,
        f"figure_{unit.value}": interval(held.figure),
        f"allowed_{unit.value}": number(budget.amount),
        "per": _stretch(budget.per),
        "since": _stretch(budget.since),
        "why": held.why,
    }


def _stretch(stretch: Stretch | None) -> Values | None:
    return None if stretch is None else {axis_key_of(stretch.axis): number(stretch.length)}


def _missing(missing: Missing) -> Values:
    why = missing.why
    return {
        "metric": missing.metric,
        "process": missing.process,
        "reason": why.reason,
        "remedy": why.remedy,
    }


def _ending(ending: Ending) -> Values:
    return {
        "code": ending.code,
        "signal": ending.signal,
        "why": ending.why,
        "cause": None if ending.cause is None else ending.cause.value,
        "detail": ending.detail,
        "at_bytes": ending.at_bytes,
        "limit_bytes": ending.limit_bytes,
    }


def failure(one: Failure) -> Values:
    """A source that could not be analysed."""
    return {"source": one.source, "message": one.message, "remedy": one.remedy}


def interval(of: Interval | None) -> Values | None:
    """A value with its interval, or null."""
    if of is None:
        return None
    return {"value": number(of.value), "low": number(of.low), "high": number(of.high)}


def number(value: float | None) -> float | None:
    """JSON has no NaN and no infinity; what is not finite is not known."""
    return value if value is not None and math.isfinite(value) else None
