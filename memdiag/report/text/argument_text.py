"""Arguments of a decision as sentences, their numbers in the units that their names end in."""

from __future__ import annotations

import math
import re

from memdiag.report.text import numbers, rates, series_names, wording
from memdiag.values.findings import Finding, Interval
from memdiag.values.verdict import Argument

_UNKNOWN = "?"
_NUMBER = re.compile(r"\{(\w+)\}")
# Levels, not changes. Of a column that falls as memory is used they are known upside down.
_LEVELS = frozenset({"level_y", "limit_y", "end_y", "before_y"})
# Shares nearer to none or to all than this are not told apart (chosen).
_LEAST_SHARE = 0.001


def decisive(finding: Finding) -> Argument | None:
    """The argument that the verdict rests on; None of a finding without a trail."""
    return next((one for one in reversed(finding.trail) if one.is_decisive), None)


def grounds(finding: Finding) -> str:
    """Why it has its verdict, in a sentence."""
    by = decisive(finding)
    if by is not None:
        return sentence(by, finding)
    told = wording.REASONS[finding.reason]
    return f"{told[:1].upper()}{told[1:]}."


def name(identifier: str) -> str:
    """A check or window in plain words."""
    return identifier.replace("_", " ")


def sentence(argument: Argument, finding: Finding) -> str:
    """What the argument says, with its numbers; one that is unknown is a question mark."""
    told = clause(argument.text, argument, finding)
    return f"{told[:1].upper()}{told[1:]}."


def clause(text: str, argument: Argument, finding: Finding) -> str:
    """`text` with the argument's numbers."""
    told = _NUMBER.sub(lambda found: _shown(found[1], argument, finding), text)
    return re.sub(r"\b1 readings\b", "1 reading", told)


def _shown(key: str, argument: Argument, finding: Finding) -> str:
    """One number; rates of one sentence are per the same unit."""
    value = argument.numbers.get(key, math.nan)
    if not math.isfinite(value):
        return _UNKNOWN
    ending = key.rpartition("_")[2]
    if ending == "y":
        return numbers.quantity(abs(value) if key in _LEVELS else value, finding.unit)
    if ending == "x":
        return series_names.stretch(finding, value)
    if ending == "rate":
        return _rate(value, argument, finding)
    if ending == "share":
        return _share(value)
    return numbers.probability(value) if ending == "p" else numbers.count(value)


def _rate(value: float, argument: Argument, finding: Finding) -> str:
    named = _NUMBER.findall(argument.text)
    said = [argument.numbers.get(key, math.nan) for key in named if key.endswith("_rate")]
    largest = max([abs(value), *(abs(one) for one in said if math.isfinite(one))])
    growth = Interval(value=value, low=value, high=value)
    told = rates.rate(growth, finding.axis, finding.unit, largest=largest)
    return told.brief().removeprefix("+")


def _share(part: float) -> str:
    """A part of 1 in percent, never "0 %" or "100 %" of what is neither."""
    if 0 < part < _LEAST_SHARE:
        return "less than 0.1 %"
    if 1 - _LEAST_SHARE < part < 1:
        return "more than 99.9 %"
    if 0.1 <= part <= 0.99:
        return numbers.share(part)
    return f"{part * 100:.1f} %".replace(".0 %", " %")
