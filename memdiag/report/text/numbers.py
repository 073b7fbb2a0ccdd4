"""Numbers as people read them; formatted nowhere else.

Memory is decimal (GB, MB, as in most logs) with three significant digits, and reads back with
`units.parse_bytes`. Colors, widths and words of a report are elsewhere.
"""

from __future__ import annotations

import math

from memdiag.values.findings import Interval, KnownSize, SizeMatch
from memdiag.values.measurements import AxisKind, Unit

PREFIXES = ("B", "KB", "MB", "GB", "TB", "PB")
_UNKNOWN = "?"
_SIZES = {
    KnownSize.MODEL: "fp32 copies of the model",
    KnownSize.OPTIMIZER_STATE: "optimizer states",
    KnownSize.TRAINING_STATE: "whole training states",
    KnownSize.BATCH: "batches of data",
}
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


def significant(value: float, digits: int = 3) -> str:
    """`value` with `digits` significant digits, without an exponent: 17.0, 1,230, 0.0042."""
    if not math.isfinite(value):
        return _UNKNOWN
    if value == 0:
        return "0"
    value = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def count(value: float) -> str:
    """A number of things: whole numbers with thousands separators, means rounded."""
    if not math.isfinite(value):
        return _UNKNOWN
    return (
        f"{round(value):,}" if value == round(value) or abs(value) >= 1000 else significant(value)
    )


def percent(value: float) -> str:
    """A percentage: `12.5%`."""
    return f"{significant(value)}%"


def size(value: float) -> str:
    """Memory of any sign: `17.4 GB`, `-640 KB`, `12 B`."""
    if not math.isfinite(value):
        return _UNKNOWN
    power = scale(value)
    number = value / 1000**power + 0.0  # never -0
    text = f"{number:.0f}" if power == 0 and number == round(number) else significant(number)
    return f"{text} {PREFIXES[power]}"


def quantity(value: float, unit: Unit) -> str:
    """A reading in its own unit."""
    match unit:
        case Unit.BYTES:
            return size(value)
        case Unit.COUNT:
            return count(value)
        case Unit.PERCENT:
            return percent(value)


def signed(value: float, unit: Unit) -> str:
    """A change: like `quantity`, with the sign of a gain written out."""
    return ("+" if value > 0 else "") + quantity(value, unit)


def between(low: float, high: float, unit: Unit) -> str:
    """A range; a unit that both ends share is written once: `17.0 to 17.7 GB`."""
    start, end = quantity(low, unit), quantity(high, unit)
    if start == end:
        return start
    number, _, start_unit = start.rpartition(" ")
    _, _, end_unit = end.rpartition(" ")
    return f"{number} to {end}" if number and start_unit == end_unit else f"{start} to {end}"


def estimate(interval: Interval, unit: Unit, plus_minus: str) -> str:
    """A signed estimate with its interval: `+291 ± 12 MB`, or `+40 (10 to 300) MB` if lopsided."""
    low, high = interval.low, interval.high
    if not (math.isfinite(low) and math.isfinite(high)):
        return f"{signed(interval.value, unit)} (range unknown)"
    half = (high - low) / 2
    if half == 0:
        return signed(interval.value, unit)
    if abs((low + high) / 2 - interval.value) > 0.2 * half:
        return f"{signed(interval.value, unit)} ({between(low, high, unit)})"
    power = scale(max(abs(interval.value), half)) if unit is Unit.BYTES else 0
    divisor = float(1000**power)
    decimals = _decimals(interval.value / divisor, half / divisor)
    value = _signed_fixed(interval.value / divisor, decimals)
    suffix = {Unit.BYTES: " " + PREFIXES[power], Unit.PERCENT: "%", Unit.COUNT: ""}[unit]
    margin = f"{half / divisor:,.{decimals}f}"
    if float(margin.replace(",", "")) == 0:
        return f"{value}{suffix}"
    return f"{value} {plus_minus} {margin}{suffix}"


def multiple(match: SizeMatch) -> str:
    """Growth in known sizes: `2.94 fp32 copies of the model (496 MB each)`."""
    return f"{significant(match.multiple)} {_SIZES[match.what]} ({size(match.size_bytes)} each)"


def confidence(probability: float) -> str:
    """A probability in whole percent, from 1% to 99%."""
    if not math.isfinite(probability):
        return _UNKNOWN
    return f"{min(99, max(1, math.floor(probability * 100 + 1e-9)))}%"


def share(part: float) -> str:
    """A part of a whole, 0 to 1, in whole percent."""
    return f"{part * 100:.0f}%" if math.isfinite(part) else _UNKNOWN


def probability(value: float) -> str:
    """A p-value as readers of statistics write it: `p = .004`, `p < .001`."""
    if not math.isfinite(value):
        return f"p = {_UNKNOWN}"
    if value < 0.001:
        return "p < .001"
    text = f"{value:.3f}" if value < 0.1 else f"{value:.2f}"
    return f"p = {text.removeprefix('0')}"


def duration(seconds: float) -> str:
    """A length of time in at most two units: `40 s`, `1 min 50 s`, `3 h 5 min`, `2 d 4 h`."""
    if not math.isfinite(seconds):
        return _UNKNOWN
    if seconds < 0.9995:
        return "0 s" if seconds <= 0 else f"{significant(seconds * 1000, 2)} ms"
    if seconds < 10:
        return f"{significant(seconds, 2)} s"
    for larger, larger_name, smaller, smaller_name in (
        (_MINUTE, "min", 1.0, "s"),
        (_HOUR, "h", _MINUTE, "min"),
        (_DAY, "d", _HOUR, "h"),
    ):
        limit = {_MINUTE: _HOUR, _HOUR: _DAY}.get(larger, math.inf)
        if round(seconds / smaller) * smaller < limit:
            wholes, rest = divmod(round(seconds / smaller), round(larger / smaller))
            parts = [f"{wholes:,} {larger_name}"] * bool(wholes)
            return " ".join(parts + [f"{rest} {smaller_name}"] * bool(rest))
    raise AssertionError("the last row has no limit")


def about(seconds: float) -> str:
    """A length of time that is an estimate, in one unit or two: `51 min`, `1 h 5 min`."""
    shown = duration(seconds)
    number, unit, *rest = shown.split(" ")
    return f"{number} {unit}" if rest and float(number.replace(",", "")) >= 10 else shown


def position(x: float, kind: AxisKind) -> str:
    """A position on the axis: a duration in seconds, else a number with thousands separators."""
    if kind is AxisKind.SECONDS:
        return duration(x)
    if not math.isfinite(x):
        return _UNKNOWN
    fractions = kind is AxisKind.EPOCH and x != round(x) and abs(x) < 100
    return significant(x) if fractions else f"{x:,.0f}"


def scale(value: float) -> int:
    """Power of 1000 so that the rounded value reads 1..999; 0 below 1000."""
    power = 0
    while power < len(PREFIXES) - 1 and abs(value) >= 999.5 * 1000**power:
        power += 1
    return power


def _decimals(value: float, half_width: float) -> int:
    """Decimals that show two digits of the uncertainty, but no more than four of the value."""
    of_half = 1 - math.floor(math.log10(half_width))
    of_value = 2 - math.floor(math.log10(abs(value))) if value else of_half
    return max(0, min(of_half, max(0, of_value) + 1, 6))


def _signed_fixed(value: float, decimals: int) -> str:
    text = f"{value:+,.{decimals}f}"
    return "0" if float(text.replace(",", "")) == 0 else text
