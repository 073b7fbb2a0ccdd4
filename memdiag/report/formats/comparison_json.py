"""A Comparison as plain JSON values, described by `comparison.schema.json` beside this file.

The conventions are those of `json`: raw numbers, units in the keys, null for what is unknown.
"""

from __future__ import annotations

from importlib import resources

from memdiag.report.formats.diagnosis_json import (
    SCHEMA_VERSION,
    Values,
    axis_key,
    failure,
    interval,
    number,
)
from memdiag.values.comparison import Comparison, Difference, Measure, SeriesComparison


def document(compared: Comparison, exit_code: int) -> Values:
    """The whole answer of `memdiag compare`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "effect": compared.effect.value,
        "exit_code": int(exit_code),
        "base": list(compared.base),
        "candidate": list(compared.candidate),
        "decided_by": compared.decided_by,
        "series": [_series(found) for found in compared.series],
        "notes": list(compared.notes),
        "failures": [failure(one) for one in compared.failures],
    }


def schema_text() -> str:
    """The JSON Schema (2020-12) of `document`, as shipped."""
    shipped = resources.files("memdiag.report").joinpath("comparison.schema.json")
    return shipped.read_text(encoding="utf-8")


def _series(found: SeriesComparison) -> Values:
    axis = axis_key(found.axis)
    deciding = found.deciding
    return {
        "metric": found.metric,
        "process": found.process,
        "role": found.role.value,
        "unit": found.unit.value,
        "axis": axis,
        "axis_name": found.axis.name,
        "effect": found.effect.value,
        "why": found.why.value,
        "base_verdicts": [verdict.value for verdict in found.base_verdicts],
        "candidate_verdicts": [verdict.value for verdict in found.candidate_verdicts],
        f"common_first_{axis}": number(found.common_x[0]),
        f"common_last_{axis}": number(found.common_x[1]),
        f"more_{axis}": number(found.need_more_x),
        "more_runs": found.more_runs,
        "decided_by": None if deciding is None else _key(found, deciding.measure),
        "measures": {_key(found, one.measure): _difference(one) for one in found.differences},
    }


def _key(found: SeriesComparison, measure: Measure) -> str:
    """`growth_bytes_per_step`, `peak_bytes`."""
    per = f"_per_{axis_key(found.axis)}" if measure is Measure.GROWTH else ""
    return f"{measure.value}_{found.unit.value}{per}"


def _difference(one: Difference) -> Values:
    return {
        "base": interval(one.base),
        "candidate": interval(one.candidate),
        "change": interval(one.change),
        "ratio": interval(one.ratio),
        "smallest_effect": number(one.smallest_effect),
    }
