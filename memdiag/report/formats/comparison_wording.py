"""What a change did, in words: the line beside the effect, the grounds, and what to do next."""

from __future__ import annotations

import math

from memdiag.report.text import numbers, rates, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.values.comparison import Comparison, Difference, Effect, Measure, SeriesComparison, Why
from memdiag.values.findings import Interval
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Verdict

EFFECTS = {
    Effect.FIXED: "FIXED",
    Effect.IMPROVED: "IMPROVED",
    Effect.NO_EFFECT: "NO EFFECT",
    Effect.WORSE: "WORSE",
    Effect.NEW_LEAK: "NEW LEAK",
    Effect.CANT_TELL: "CAN'T TELL",
}
STYLES = {
    Effect.FIXED: "green",
    Effect.IMPROVED: "green",
    Effect.NO_EFFECT: "blue",
    Effect.WORSE: "red",
    Effect.NEW_LEAK: "red",
    Effect.CANT_TELL: "magenta",
}
MEASURES = {
    Measure.GROWTH: "growth",
    Measure.RISE: "rise",
    Measure.LEVEL: "plateau",
    Measure.PEAK: "peak",
}
# A share of what is nearly nothing says nothing.
_SHARES_UP_TO = 2.0
# Why the rule leads to its effect: a sentence each.
GROUNDS = {
    Why.LEAK_GONE: "At most a quarter of the old growth could hide in the candidate's noise.",
    Why.LEAK_APPEARED: "Over the same stretch the base did not grow like that.",
    Why.RATE_CHANGED: "Both leak, at different rates.",
    Why.RATE_EQUAL: "Both leak, at the same rate within noise; a change by a third is excluded.",
    Why.SLOWER_SO_FAR: "Not all runs are long enough to be judged; so far the candidate rose less.",
    Why.FASTER_SO_FAR: "Not all runs are long enough to be judged; so far the candidate rose more.",
    Why.LEVEL_CHANGED: "Neither leaks; they settle at different levels.",
    Why.LEVEL_EQUAL: "Neither leaks, and they settle at the same level within noise.",
    Why.PEAK_CHANGED: "Neither leaks, and they settle at the same level, but the peaks differ.",
    Why.BASE_UNSETTLED: "The base's own verdict is open: it is too short or too irregular.",
    Why.CANDIDATE_UNSETTLED: "The candidate's own verdict is open: too short or too irregular.",
    Why.BASE_TOO_SHORT: "The base ends before a leak like the candidate's would have shown.",
    Why.CANDIDATE_TOO_SHORT: "The candidate ends before the base's leak would have shown in it.",
    Why.TOO_NOISY: "The noise is so large that a real change would not have shown.",
    Why.NOT_MEASURED: "One side's runs are too short to measure the growth at all.",
    Why.AXES_DIFFER: "One side is recorded over another axis than the other.",
}


def gist(found: SeriesComparison) -> str:
    """The effect in a few words, beside its name."""
    by = found.deciding
    match found.effect:
        case Effect.FIXED:
            return f"the leak of {_amounts(found, by)[0]} is gone" if by else "the leak is gone"
        case Effect.NEW_LEAK:
            return f"it now grows by {_amounts(found, by)[1]}" if by else "it now grows"
        case Effect.NO_EFFECT if found.why is Why.RATE_EQUAL and by:
            return f"it still grows by {_amounts(found, by)[1]}"
        case Effect.CANT_TELL:
            return _OPEN.get(found.why, "the runs do not tell")
        case _:
            return _changed(found, by) if by else GROUNDS[found.why]


_OPEN = {
    Why.BASE_UNSETTLED: "the base is not settled itself",
    Why.CANDIDATE_UNSETTLED: "the candidate is not settled itself",
    Why.BASE_TOO_SHORT: "the base ends too early",
    Why.CANDIDATE_TOO_SHORT: "the candidate ends too early",
    Why.TOO_NOISY: "too noisy to see a real change",
    Why.NOT_MEASURED: "too short to measure growth",
    Why.AXES_DIFFER: "the axes differ",
}


def _changed(found: SeriesComparison, by: Difference) -> str:
    before, after = _amounts(found, by)
    percent = "" if by.ratio is None else f" ({_percent(by.ratio.value)})"
    match by.measure:
        case Measure.GROWTH:
            return f"it grows by {after} instead of {before}{percent}"
        case Measure.RISE:
            over = series_names.stretch(found, found.common_x[1] - found.common_x[0])
            return f"it rose by {after} instead of {before} over {over}{percent}"
        case Measure.LEVEL:
            if found.effect is Effect.NO_EFFECT:
                return f"it stays at {numbers.between(*_ordered(by), found.unit)}"
            return f"it settles at {after} instead of {before}{percent}"
        case Measure.PEAK:
            return f"it peaks at {after} instead of {before}{percent}"


def _ordered(by: Difference) -> tuple[float, float]:
    low, high = sorted((by.base.value, by.candidate.value))
    return low, high


def _percent(ratio: float) -> str:
    """`-29 %`, or `x 3.1` where it more than doubled."""
    if ratio >= 2:
        return f"{numbers.significant(ratio, 2)} times as much"
    return f"{(ratio - 1) * 100:+.0f} %"


def _amounts(found: SeriesComparison, by: Difference | None) -> tuple[str, str]:
    """Base and candidate without intervals, in the same words."""
    if by is None:
        return "", ""
    return shown(found, by, by.base.value), shown(found, by, by.candidate.value)


def shown(found: SeriesComparison, by: Difference, value: float) -> str:
    """A value of this measure: `291 MB per step`, `17.0 GB`."""
    if by.measure is not Measure.GROWTH:
        return numbers.quantity(value, found.unit)
    rate = _rate(found, by, Interval(value=value, low=value, high=value))
    return f"{numbers.quantity(rate.growth.value, found.unit)} per {rate.per}"


def _rate(found: SeriesComparison, by: Difference, growth: Interval) -> rates.Rate:
    largest = max(abs(by.base.value), abs(by.candidate.value))
    return rates.rate(growth, found.axis, found.unit, largest=largest)


def estimate(
    found: SeriesComparison, by: Difference, of: Interval, screen: Screen, *, margin: bool
) -> str:
    """A cell of the table: an amount or a change with its interval, the rate's unit left out."""
    scaled = _rate(found, by, of).growth if by.measure is Measure.GROWTH else of
    is_change = of is by.change
    if not margin:
        show = numbers.signed if is_change else numbers.quantity
        return show(scaled.value, found.unit)
    text = numbers.estimate(scaled, found.unit, screen.plus_minus)
    return text if is_change or by.measure is Measure.GROWTH else text.removeprefix("+")


def measure(found: SeriesComparison, by: Difference) -> str:
    """`growth per step`, `peak`."""
    name = MEASURES[by.measure]
    if by.measure is not Measure.GROWTH:
        return name
    return f"{name} per {_rate(found, by, by.base).per}"


def would_have_shown(found: SeriesComparison, screen: Screen) -> str:
    """How small an effect these runs would have shown, "" where no measure decided."""
    by = found.deciding
    if by is None or not math.isfinite(by.smallest_effect):
        return ""
    base = abs(by.base.value)
    share = ""
    if by.smallest_effect <= _SHARES_UP_TO * base:
        share = f" ({numbers.share(by.smallest_effect / base)} of the base)"
    return f"A change of {shown(found, by, by.smallest_effect)}{share} would have shown."


def next_steps(compared: Comparison) -> list[str]:
    """What to do, the most telling first."""
    found = compared.deciding
    if found is None:
        return ["Compare recordings of the same metric, or name it on both sides with --metric."]
    match found.effect:
        case Effect.FIXED:
            return ["Nothing. To keep it so, gate the job: memdiag run ends with 1 on a leak."]
        case Effect.NEW_LEAK | Effect.WORSE:
            return ["memdiag analyze on the candidate shows where it grows."]
        case Effect.NO_EFFECT | Effect.IMPROVED:
            return _what_is_left(found)
        case Effect.CANT_TELL:
            return [_more(found)]


def _what_is_left(found: SeriesComparison) -> list[str]:
    if found.why is Why.SLOWER_SO_FAR:
        return ["Let the candidate run longer: whether it still leaks is not settled."]
    if Verdict.LEAK not in found.candidate_verdicts:
        return ["Nothing to fix: the candidate does not leak."]
    if found.effect is Effect.NO_EFFECT:
        return ["Look elsewhere for the leak: memdiag analyze on the candidate says where."]
    return ["It still leaks, more slowly: memdiag analyze on the candidate says where."]


def _more(found: SeriesComparison) -> str:
    if found.why is Why.AXES_DIFFER:
        return "Record both sides with steps, or name an axis that both have with --x."
    if found.more_runs:
        return "Record more runs of each side, and name them all: --base A --base B --candidate C."
    more = found.need_more_x
    if more is None or not math.isfinite(more):
        return "Record longer runs of both sides."
    amount = numbers.duration(more) if found.axis.kind is AxisKind.SECONDS else _steps(found, more)
    sides = {
        Why.BASE_UNSETTLED: "the base",
        Why.BASE_TOO_SHORT: "the base",
        Why.CANDIDATE_UNSETTLED: "the candidate",
        Why.CANDIDATE_TOO_SHORT: "the candidate",
    }
    return f"Let {sides.get(found.why, 'both sides')} run for about {amount} more to know."


def _steps(found: SeriesComparison, more: float) -> str:
    whole = math.ceil(more)
    return f"{numbers.count(whole)} {wording.axis(found.axis, whole)}"
