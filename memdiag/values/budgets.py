"""What a gate allows: budgets of growth, peak and variation, as written by a person.

`1GB/50steps`, `rss=16GB`, `tensors=100/1000steps`: an amount, what it is for, and for growth per
what stretch of the axis.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from memdiag.errors import UsageError
from memdiag.values.measurements import AxisKind
from memdiag.values.sanitize import printable
from memdiag.values.units import parse_bytes, seconds_per_unit

_WRITTEN = re.compile(
    r"(?:(?P<metric>[^=]+)=)?\s*(?P<amount>[^/=]+?)\s*(?:/\s*(?P<per>[^/=]+?)\s*)?", re.S
)
_PER = re.compile(r"(?P<length>[0-9][0-9_,]*(?:\.[0-9]+)?)?\s*(?P<word>[a-z]+)", re.I)
_WORDS = {
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

    GROWTH = "growth"  # the rate at which the run ended, per stretch of the axis
    PEAK = "peak"  # the highest reading
    VARIATION = "variation"  # highest less lowest reading, from a position on


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
    """The budget that `text` means. Raises UsageError.

    given_as: where it was written (`--max-growth`), for messages. metric: what it is for where
    the text names nothing.
    """
    match = _WRITTEN.fullmatch(text.strip())
    if match is None:
        raise _no_budget(kind, text, given_as)
    per = match["per"]
    if (per is not None) != (kind is BudgetKind.GROWTH):
        raise _no_budget(kind, text, given_as)
    amount, in_bytes = _amount(match["amount"], kind, text, given_as)
    return Budget(
        kind=kind,
        amount=amount,
        in_bytes=in_bytes,
        metric=(match["metric"] or metric).strip(),
        text=f"{given_as} {text.strip()}",
        per=None if per is None else _stretch(per, kind, text, given_as),
        since=since,
    )


def _amount(amount: str, kind: BudgetKind, text: str, given_as: str) -> tuple[float, bool]:
    """Bytes and whether a unit of memory was written; `0.5` and `3 %` are plain numbers."""
    plain = amount.strip().removesuffix("%").strip()
    try:
        number = float(plain)
    except ValueError:
        number = None
    if number is None:
        try:
            return float(parse_bytes(amount)), True
        except UsageError as error:
            raise _no_budget(kind, text, given_as) from error
    if not 0 <= number < float("inf"):
        raise _no_budget(kind, text, given_as)
    return number, False


def _stretch(per: str, kind: BudgetKind, text: str, given_as: str) -> Stretch:
    match = _PER.fullmatch(per.strip())
    if match is None:
        raise _no_budget(kind, text, given_as)
    length = float((match["length"] or "1").replace(",", "").replace("_", ""))
    word = match["word"].lower()
    axis = _WORDS.get(word) or _WORDS.get(word.removesuffix("s"))
    axis = axis or _WORDS.get(word.removesuffix("es"))
    seconds = seconds_per_unit(word)
    if axis is None and seconds is not None:
        axis, length = AxisKind.SECONDS, length * seconds
    if axis is None or length <= 0:
        raise _no_budget(kind, text, given_as)
    return Stretch(length=length, axis=axis)


_EXAMPLES = {
    BudgetKind.GROWTH: "1GB/50steps, 10MB/epoch, 50MB/min, rss=1GB/1000steps",
    BudgetKind.PEAK: "16GB, rss=20GiB",
    BudgetKind.VARIATION: "500MB, vram=1GB",
}


def _no_budget(kind: BudgetKind, text: str, given_as: str) -> UsageError:
    return UsageError(
        f"{given_as} {printable(text)!r} is no budget of {kind.value}",
        remedy=f"write {_EXAMPLES[kind]}",
    )
