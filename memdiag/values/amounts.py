"""Amounts as people write them in options: `[METRIC=]AMOUNT[/STRETCH]`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memdiag.errors import UsageError
from memdiag.values.measurements import Unit
from memdiag.values.units import parse_bytes

_WRITTEN = re.compile(
    r"(?:(?P<metric>[^=]+)=)?\s*(?P<amount>[^/=]+?)\s*(?:/\s*(?P<per>[^/=]+?)\s*)?", re.S
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An amount, what it applies to, and per what.

    metric, per: as written, "" if not given. unit: COUNT for a plain number.
    """

    metric: str
    value: float
    unit: Unit
    per: str


def parse_amount(text: str) -> Amount | None:
    """The parts of `rss=16GB`, `80%`, `tensors=100/1000steps`; None if it has another form."""
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        return None
    value, unit = _value(match["amount"])
    if value is None or not 0 <= value < float("inf"):
        return None
    return Amount(
        metric=(match["metric"] or "").strip(), value=value, unit=unit, per=match["per"] or ""
    )


def _value(amount: str) -> tuple[float | None, Unit]:
    plain = amount.removesuffix("%").strip()
    try:
        return float(plain), Unit.COUNT if plain == amount else Unit.PERCENT
    except ValueError:
        pass
    try:
        return float(parse_bytes(amount)), Unit.BYTES
    except UsageError:
        return None, Unit.BYTES
