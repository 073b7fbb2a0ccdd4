"""Round positions for the marks of an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memdiag.values.measurements import AxisKind, Unit

_MANTISSAS = (1.0, 2.0, 2.5, 5.0, 10.0)
_WHOLE_MANTISSAS = (1.0, 2.0, 5.0, 10.0)
# (largest span in seconds, seconds in one, its symbol)
_CLOCK = ((300.0, 1.0, "s"), (10800.0, 60.0, "min"), (259200.0, 3600.0, "h"))
_DAY = (86400.0, "d")
_MEMORY = ("B", "KB", "MB", "GB", "TB", "PB")


def spacing(span: float, wanted: int, *, whole: bool = False) -> float:
    """The distance of at most `wanted` round marks over `span`; at least 1 where `whole`."""
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
    """What one mark's number counts: (divisor, symbol), one for a whole axis."""
    if unit is not Unit.BYTES:
        return 1.0, "%" if unit is Unit.PERCENT else ""
    scale = 0
    while scale < len(_MEMORY) - 1 and largest >= 999.5 * 1000**scale:
        scale += 1
    return float(1000**scale), _MEMORY[scale]


def axis_unit(kind: AxisKind, span: float) -> tuple[float, str]:
    """The same for the horizontal axis; the symbol is empty where the axis has its own word."""
    if kind is not AxisKind.SECONDS:
        return 1.0, ""
    for largest, seconds, symbol in _CLOCK:
        if span <= largest:
            return seconds, symbol
    return _DAY


def labels(values: Sequence[float]) -> list[str]:
    """The numbers with as many decimals as tell them apart, all with the same."""
    for decimals in range(10):
        texts = [f"{value:,.{decimals}f}" for value in values]
        close = all(
            abs(float(text.replace(",", "")) - value) <= 1e-6 * max(1.0, abs(value))
            for text, value in zip(texts, values, strict=True)
        )
        if close and len(set(texts)) == len(set(values)):
            break
    return ["0" if float(text.replace(",", "")) == 0 else text for text in texts]
