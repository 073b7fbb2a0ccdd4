"""Thresholds whose crossing is reported while memory grows: `--warn-at`, `--critical-at`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memdiag.values.amounts import parse_amount
from memdiag.values.measurements import MarkLevel, Unit
from memdiag.values.metrics import counts_bytes
from memdiag.values.sanitize import printable
from memdiag.values.units import invalid, no_unit, parse_seconds

_ONE_GPU = re.compile(r"gpu[0-9].*_vram_bytes")
_FORECAST = "in:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """One threshold: an amount, a share of the tightest limit, or the time until a limit.

    metric: what it applies to, as written; "" for resident and device memory.
    size_bytes, share, within_s: one of them is set; the share is of 1. within_s: a leak reaches the
    first limit in less than this time.
    text: as it was given, option included ("--warn-at 80%").
    """

    level: MarkLevel
    metric: str
    text: str
    size_bytes: int | None = None
    share: float | None = None
    within_s: float | None = None

    def is_for(self, metric: str) -> bool:
        """Return True if it names this metric (`vram`, `vram_bytes`)."""
        return self.metric.casefold() in {metric, metric.removesuffix("_bytes")}


def parse_threshold(level: MarkLevel, text: str, *, given_as: str) -> Threshold:
    """The threshold in `12GB`, `80%`, `vram=20GB`, `in:5min`. Raises UsageError.

    given_as: the option, for messages.
    """
    shown = f"{given_as} {printable(text)}"
    if text.strip().startswith(_FORECAST):
        within_s = parse_seconds(text.strip().removeprefix(_FORECAST), given_as)
        if within_s <= 0:
            raise invalid(text, given_as, "must be greater than 0", "write in:5min")
        return Threshold(level=level, metric="", text=shown, within_s=within_s)
    amount = parse_amount(text)
    if amount is None or amount.per:
        raise invalid(text, given_as, "not a threshold", "write 12GB, 80% or in:5min")
    if amount.unit is Unit.COUNT and amount.value and counts_bytes(amount.metric):
        raise no_unit(text, given_as, f"{amount.value:.12g}")
    share = amount.value / 100 if amount.unit is Unit.PERCENT else None
    size = round(amount.value) if share is None else None
    if share is not None and not 0 < share <= 1:
        raise invalid(text, given_as, "out of range", "give more than 0% and at most 100%")
    if size == 0:
        raise invalid(text, given_as, "must be greater than 0", "write 12GB or 80%")
    return Threshold(
        level=level,
        metric=amount.metric,
        text=shown,
        size_bytes=size,
        share=share,
    )


def one_gpu(metric: str) -> bool:
    """Return True if a metric is the tree's share of one GPU of several (`gpu0_vram_bytes`)."""
    return _ONE_GPU.fullmatch(metric) is not None
