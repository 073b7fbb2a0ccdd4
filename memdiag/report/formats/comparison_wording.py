"""The words of a comparison: the line beside the effect, the reason, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from memdiag.recording.native.runs import RECORDING, RUNS
from memdiag.report.text import numbers, rates, series_names
from memdiag.report.text.screen import Screen
from memdiag.values.comparison import Comparison, Difference, Effect, Measure, SeriesComparison, Why
from memdiag.values.findings import Interval
from memdiag.values.verdict import Verdict

STYLES = {
    Effect.FIXED: "green",
    Effect.IMPROVED: "green",
    Effect.NO_EFFECT: "blue",
    Effect.WORSE: "red",
    Effect.NEW_LEAK: "red",
    Effect.INCONCLUSIVE: "magenta",
}
Trace = tuple[tuple[float, float], ...]

# A change is shown as a share of the old value up to this factor.
_SHARES_UP_TO = 2.0
# The reason of each rule, in a sentence.
GROUNDS = {
    Why.LEAK_GONE: "Any remaining growth is below a quarter of the old rate.",
    Why.LEAK_APPEARED: "Over the same steps, the runs before did not grow like that.",
    Why.RATE_CHANGED: "Both leak, at different rates.",
    Why.RATE_EQUAL: "Both leak, at the same rate within noise; a change by a third is ruled out.",
    Why.SLOWER_SO_FAR: "Not all runs are long enough for a verdict; so far memory rose less.",
    Why.FASTER_SO_FAR: "Not all runs are long enough for a verdict; so far memory rose more.",
    Why.LEVEL_CHANGED: "Neither leaks; their plateaus differ.",
    Why.LEVEL_EQUAL: "Neither leaks, and their plateaus are equal within noise.",
    Why.PEAK_CHANGED: "Neither leaks, and their plateaus are equal, but the peaks differ.",
    Why.BASE_UNSETTLED: "The verdict before is inconclusive: too short or too irregular.",
    Why.CANDIDATE_UNSETTLED: "The verdict after is inconclusive: too short or too irregular.",
    Why.BASE_TOO_SHORT: "The run before ends before a leak like the new one would be visible.",
    Why.CANDIDATE_TOO_SHORT: "The run after ends before the old leak would be visible.",
    Why.TOO_NOISY: "The noise is too large to detect a real change.",
    Why.NOT_MEASURED: "The runs of one side are too short to measure growth.",
    Why.AXES_DIFFER: "The two sides are recorded over different axes.",
}
_INCONCLUSIVE = {
    Why.BASE_UNSETTLED: "the runs before are inconclusive",
    Why.CANDIDATE_UNSETTLED: "the runs after are inconclusive",
    Why.BASE_TOO_SHORT: "the run before ends too early",
    Why.CANDIDATE_TOO_SHORT: "the run after ends too early",
    Why.TOO_NOISY: "too noisy to detect a real change",
    Why.NOT_MEASURED: "too short to measure growth",
    Why.AXES_DIFFER: "the axes differ",
}


def run(source: str) -> str:
    """The name of a run that was kept, as `memdiag list` shows it, else the path of its file."""
    path = Path(source)
    is_kept = path.name == RECORDING and path.parent.parent.name == RUNS
    return path.parent.name if is_kept else source


def name(effect: Effect) -> str:
    """`NO EFFECT`."""
    return effect.name.replace("_", " ")


def verdicts(found: Sequence[Verdict]) -> str:
    """The verdicts of the runs of one side, each once: `leak`, `stable, inconclusive`."""
    return ", ".join(dict.fromkeys(verdict.name.lower() for verdict in found))


def gist(found: SeriesComparison) -> str:
    """The effect in a few words, beside its name."""
    by = found.deciding
    if found.effect is Effect.INCONCLUSIVE:
        return _INCONCLUSIVE.get(found.why, "the runs do not show an effect")
    if by is None:
        return GROUNDS[found.why]
    before, after = shown(found, by, by.base.value), shown(found, by, by.candidate.value)
    match found.effect:
        case Effect.FIXED:
            return f"the leak of {before} is gone"
        case Effect.NEW_LEAK:
            return f"it now grows by {after}"
        case Effect.NO_EFFECT if found.why is Why.RATE_EQUAL:
            return f"it still grows by {after}"
        case _:
            return _changed(found, by, before, after)


def _changed(found: SeriesComparison, by: Difference, before: str, after: str) -> str:
    percent = "" if by.ratio is None else f" ({_percent(by.ratio.value)})"
    match by.measure:
        case Measure.GROWTH:
            return f"it grows by {after} instead of {before}{percent}"
        case Measure.RISE:
            over = series_names.stretch(found, found.common_x[1] - found.common_x[0])
            return f"it rose by {after} instead of {before} over {over}{percent}"
        case Measure.LEVEL if found.effect is Effect.NO_EFFECT:
            low, high = sorted((by.base.value, by.candidate.value))
            return f"its plateau is {numbers.between(low, high, found.unit)}"
        case Measure.LEVEL:
            return f"its plateau is {after} instead of {before}{percent}"
        case Measure.PEAK:
            return f"it peaks at {after} instead of {before}{percent}"


def _percent(ratio: float) -> str:
    """`-29%`, or `3.1 times as much` if it more than doubled."""
    if ratio >= 2:
        return f"{numbers.significant(ratio, 2)} times as much"
    return f"{(ratio - 1) * 100:+.0f}%"


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
    """A cell of the table: a value or a change with its interval, without the unit of the rate."""
    scaled = _rate(found, by, of).growth if by.measure is Measure.GROWTH else of
    is_change = of is by.change
    if not margin:
        show = numbers.signed if is_change else numbers.quantity
        return show(scaled.value, found.unit)
    text = numbers.estimate(scaled, found.unit, screen.plus_minus)
    return text if is_change or by.measure is Measure.GROWTH else text.removeprefix("+")


def measure(found: SeriesComparison, by: Difference) -> str:
    """`growth per step`, `peak`."""
    match by.measure:
        case Measure.GROWTH:
            return f"growth per {_rate(found, by, by.base).per}"
        case Measure.LEVEL:
            return "plateau"
        case Measure.RISE | Measure.PEAK:
            return str(by.measure.value)


def smallest_detectable(found: SeriesComparison) -> str:
    """The smallest change that these runs would have detected, "" if no measure decided."""
    by = found.deciding
    if by is None or not math.isfinite(by.smallest_effect):
        return ""
    base = abs(by.base.value)
    share = ""
    if by.smallest_effect <= _SHARES_UP_TO * base:
        share = f" ({numbers.share(by.smallest_effect / base)} of the old value)"
    return f"The smallest detectable change is {shown(found, by, by.smallest_effect)}{share}."


def next_step(compared: Comparison) -> str:
    """What to do."""
    found = compared.deciding
    if found is None:
        return "Compare recordings of the same metric, or name it on both sides with --metric."
    match found.effect:
        case Effect.FIXED:
            higher = _higher(found)
            gate = "To keep it so, gate the job: memdiag run exits with 1 on a leak."
            return f"{higher} {gate}" if higher else f"Nothing to fix. {gate}"
        case Effect.NEW_LEAK | Effect.WORSE:
            return "Run memdiag analyze on the run after to see where it grows."
        case Effect.INCONCLUSIVE:
            return _more(found)
        case Effect.NO_EFFECT | Effect.IMPROVED:
            return _what_is_left(found)


def _higher(found: SeriesComparison) -> str:
    """What the run after the leak needs more than the one before, "" if it does not."""
    for one in found.differences:
        if one.measure in (Measure.LEVEL, Measure.PEAK) and one.change.low > 0:
            before, after = (shown(found, one, side.value) for side in (one.base, one.candidate))
            return f"But its {measure(found, one)} is higher: {after} instead of {before}."
    return ""


def _what_is_left(found: SeriesComparison) -> str:
    if found.why is Why.SLOWER_SO_FAR:
        length = _twice(found, found.trace_candidate)
        return f"Record the run after the change for twice as long{length}: it may still leak."
    if Verdict.LEAK not in found.candidate_verdicts:
        return "Nothing to fix: the run after the change does not leak."
    if found.effect is Effect.NO_EFFECT:
        return "The change did not fix the leak: memdiag analyze of the run after locates it."
    return "It still leaks, more slowly: memdiag analyze of the run after locates it."


def _twice(found: SeriesComparison, trace: Trace) -> str:
    return f", {series_names.stretch(found, 2 * length)}" if (length := _length(trace)) > 0 else ""


def _length(trace: Trace) -> float:
    return trace[-1][0] - trace[0][0] if trace else 0.0


def _more(found: SeriesComparison) -> str:
    if found.why is Why.AXES_DIFFER:
        return "Record both sides with steps, or name an axis that both have with --x."
    if found.more_runs:
        return "Record more runs of each side, and name them all: --before A --before B --after C."
    more = found.need_more_x
    if more is None or not math.isfinite(more):
        longest = max(found.trace_base, found.trace_candidate, key=_length)
        return f"Record both sides for twice as long{_twice(found, longest)}."
    side = "both sides"
    if found.why in {Why.BASE_UNSETTLED, Why.BASE_TOO_SHORT}:
        side = "the run before"
    if found.why in {Why.CANDIDATE_UNSETTLED, Why.CANDIDATE_TOO_SHORT}:
        side = "the run after"
    amount = series_names.stretch(found, math.ceil(more))
    return f"Record {side} for about {amount} more to reach an answer."
