"""Arguments of a decision as sentences, with their numbers in the units of their names."""

from __future__ import annotations

import math
import re

from memdiag.report.text import numbers, rates, series_names, text_layout, wording
from memdiag.values.findings import Finding, Interval
from memdiag.values.verdict import Argument

_UNKNOWN = "?"
_NUMBER = re.compile(r"\{(\w+)\}")
# Levels, not changes. In a column that counts downwards they are negative.
_LEVELS = frozenset({"level_y", "limit_y", "end_y", "before_y"})
# Shares closer than this to 0 or 1 are not distinguished (heuristic).
_LEAST_SHARE = 0.001


def decisive(finding: Finding) -> Argument | None:
    """The argument that the verdict rests on; None without a trail."""
    return next((one for one in reversed(finding.trail) if one.is_decisive), None)


def grounds(finding: Finding) -> str:
    """The reason for the verdict, in a sentence."""
    by = decisive(finding)
    if by is not None:
        return sentence(by, finding)
    return text_layout.sentence(wording.REASONS[finding.reason])


def name(identifier: str) -> str:
    """A check or window in plain words."""
    return identifier.replace("_", " ")


def sentence(argument: Argument, finding: Finding) -> str:
    """The argument with its numbers; an unknown number is a question mark."""
    return text_layout.sentence(clause(argument.text, argument, finding))


def clause(text: str, argument: Argument, finding: Finding) -> str:
    """`text` with the argument's numbers."""
    shown = _NUMBER.sub(lambda found: _shown(found[1], argument, finding), text)
    if finding.falling:
        shown = re.sub("^[Ii]t ", f"{wording.IN_USE} ", shown)
    return re.sub(r"\b1 readings\b", "1 reading", shown)


def _shown(key: str, argument: Argument, finding: Finding) -> str:
    """One number. The rates of one sentence are per the same unit."""
    value = argument.numbers.get(key, math.nan)
    if not math.isfinite(value):
        return _UNKNOWN
    ending = key.rpartition("_")[2]
    if ending == "y":
        return numbers.quantity(abs(value) if key in _LEVELS else value, finding.unit)
    if ending == "x":
        return series_names.stretch(finding, value)
    if ending == "s":
        return numbers.duration(value)
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
    return rates.rate(growth, finding.axis, finding.unit, largest=largest).brief().lstrip("+")


def _share(part: float) -> str:
    """A part of 1 in percent; only 0 and 1 themselves are "0%" and "100%"."""
    if 0 < part < _LEAST_SHARE:
        return "less than 0.1%"
    if 1 - _LEAST_SHARE < part < 1:
        return "more than 99.9%"
    if 0.1 <= part <= 0.99:
        return numbers.share(math.floor(part * 100 + 1e-9) / 100)  # below a limit, it shows so
    return f"{part * 100:.1f}%".replace(".0%", "%")
