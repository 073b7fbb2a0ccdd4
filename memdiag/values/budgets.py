"""Budgets of growth, peak and variation: what a gate allows.

`1GB/50steps`, `rss=16GB`, `tensors=100/1000steps`: an amount, its metric and, for growth, the
stretch of the axis in which it may be added.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from memdiag.errors import UsageError
from memdiag.values.amounts import parse_amount
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.metrics import counts_bytes
from memdiag.values.units import invalid, no_unit, seconds_per_unit, split_quantity

_AXES = {
    "step": AxisKind.STEP,
    "iteration": AxisKind.STEP,
    "iter": AxisKind.STEP,
    "batch": AxisKind.STEP,
    "epoch": AxisKind.EPOCH,
    "request": AxisKind.REQUEST,
    "call": AxisKind.REQUEST,
    "sample": AxisKind.INDEX,
    "cycle": AxisKind.INDEX,
}


class BudgetKind(enum.Enum):
    """What is bounded."""

    GROWTH = "growth"  # the growth rate at the end of the run, per stretch of the axis
    PEAK = "peak"  # the highest reading
    VARIATION = "variation"  # highest minus lowest reading, from a position on


_EXAMPLES = {
    BudgetKind.GROWTH: "1GB/50steps, 10MB/epoch, 50MB/min, rss=1GB/1000steps",
    BudgetKind.PEAK: "16GB, rss=20GiB",
    BudgetKind.VARIATION: "500MB, vram=1GB",
}
_OF_COUNTS = "0/epoch, 100/1000steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """An interval of an axis: 50 steps, 60 seconds.

    length: how much. axis: of what.
    """

    length: float
    axis: AxisKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """One budget.

    kind: what is bounded. amount: bytes, or a plain number for counts and percentages.
    in_bytes: a unit of memory was given; the budget then applies to series of bytes only.
    metric: metric that it is for; "" for resident and device memory.
    text: the budget as given, with its option.
    per: interval of a growth budget. since: first position of a variation budget.
    """

    kind: BudgetKind
    amount: float
    in_bytes: bool
    metric: str
    text: str
    per: Stretch | None = None
    since: Stretch | None = None


def parse_budget(
    kind: BudgetKind, text: str, *, given_as: str, since: Stretch | None = None, metric: str = ""
) -> Budget:
    """The budget that `text` describes. Raises UsageError.

    given_as: where it was written (`--max-growth`), for messages. metric: what it applies to if
    the text does not name a metric.
    """
    amount = parse_amount(text)
    if amount is None or bool(amount.per) != (kind is BudgetKind.GROWTH):
        raise _invalid_budget(kind, text, given_as, metric)
    is_count = amount.unit is Unit.COUNT and amount.value > 0
    if is_count and counts_bytes(amount.metric or metric):
        raise no_unit(text, given_as, f"{amount.value:.12g}")
    per = _stretch(amount.per) if amount.per else None
    if amount.per and per is None:
        raise _invalid_budget(kind, text, given_as, metric)
    return Budget(
        kind=kind,
        amount=amount.value,
        in_bytes=amount.unit is Unit.BYTES,
        metric=amount.metric or metric,
        text=f"{given_as} {text.strip()}",
        per=per,
        since=since,
    )


def _stretch(text: str) -> Stretch | None:
    """The stretch in `50steps`, `epoch`, `1.5h`."""
    length, word = split_quantity(text)
    if length is None:
        length, word = 1.0, text.strip().lower()
    seconds = seconds_per_unit(word) if word else None
    names = (word, word.removesuffix("s"), word.removesuffix("es"))
    axis = next((_AXES[name] for name in names if name in _AXES), None)
    if axis is None and seconds is not None:
        axis, length = AxisKind.SECONDS, length * seconds
    return Stretch(length=length, axis=axis) if axis is not None and length > 0 else None


def _invalid_budget(kind: BudgetKind, text: str, given_as: str, metric: str) -> UsageError:
    examples = _OF_COUNTS if metric else _EXAMPLES[kind]
    return invalid(text, given_as, f"not a {kind.value} budget", f"use {examples}")
