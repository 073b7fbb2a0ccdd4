"""Round positions for the marks of an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memdiag.report.text import numbers
from memdiag.values.measurements import AxisKind, Unit

_MANTISSAS = (1.0, 2.0, 2.5, 5.0, 10.0)
_WHOLE_MANTISSAS = (1.0, 2.0, 5.0, 10.0)
# (largest span in seconds, seconds in one, its symbol)
_CLOCK = ((300.0, 1.0, "s"), (10800.0, 60.0, "min"), (259200.0, 3600.0, "h"))
_DAY = (86400.0, "d")


def spacing(span: float, wanted: int, *, whole: bool = False) -> float:
    """The distance of at most `wanted` round marks over `span`; at least 1 if `whole`."""
    raw = max(span, 1e-300) / max(1, wanted)
    power = 10.0 ** math.floor(math.log10(raw))
    mantissas = _WHOLE_MANTISSAS if whole else _MANTISSAS
    distance = next(m for m in mantissas if m * power >= raw * (1 - 1e-9)) * power
    return max(1.0, distance) if whole else distance


def marks(low: float, high: float, distance: float) -> list[float]:
    """Multiples of `distance` within [low, high]."""
    first, last = math.ceil(low / distance - 1e-9), math.floor(high / distance + 1e-9)
    return [at * distance for at in range(first, last + 1)]


def memory_unit(unit: Unit, largest: float) -> tuple[float, str]:
    """The unit of the labels of a vertical axis: (divisor, symbol)."""
    if unit is not Unit.BYTES:
        return 1.0, "%" if unit is Unit.PERCENT else ""
    scale = numbers.scale(largest)
    return float(1000**scale), numbers.PREFIXES[scale]


def axis_unit(kind: AxisKind, span: float) -> tuple[float, str]:
    """The unit of the labels of a horizontal axis; the symbol is "" unless it is in seconds."""
    if kind is not AxisKind.SECONDS:
        return 1.0, ""
    for largest, seconds, symbol in _CLOCK:
        if span <= largest:
            return seconds, symbol
    return _DAY


def labels(values: Sequence[float]) -> list[str]:
    """The numbers with the fewest decimals that distinguish them."""
    for decimals in range(10):
        texts = [f"{value:,.{decimals}f}" for value in values]
        close = all(
            abs(float(text.replace(",", "")) - value) <= 1e-6 * max(1.0, abs(value))
            for text, value in zip(texts, values, strict=True)
        )
        if close and len(set(texts)) == len(set(values)):
            break
    return ["0" if float(text.replace(",", "")) == 0 else text for text in texts]
