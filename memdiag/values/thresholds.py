"""Thresholds that a user wants to hear of while memory grows: `--warn-at`, `--critical-at`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memdiag.errors import UsageError
from memdiag.values.measurements import MarkLevel
from memdiag.values.sanitize import printable
from memdiag.values.units import parse_bytes

_WRITTEN = re.compile(r"(?:(?P<metric>[^=]+)=)?\s*(?P<amount>[^=]+?)\s*", re.S)
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*%")
_ONE_GPU = re.compile(r"gpu[0-9].*_vram_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """One threshold: an amount, or a part of the tightest limit.

    metric: what it is for, as written; "" for resident and device memory.
    size_bytes, share: one of them is set; the share is of 1.
    text: as it was given, option included ("--warn-at 80%").
    """

    level: MarkLevel
    metric: str
    text: str
    size_bytes: int | None = None
    share: float | None = None

    def is_for(self, metric: str) -> bool:
        """Whether it names this metric (`vram`, `vram_bytes`)."""
        return self.metric.casefold() in {metric, metric.removesuffix("_bytes")}


def parse_threshold(level: MarkLevel, text: str, *, given_as: str) -> Threshold:
    """The threshold in `12GB`, `80%`, `vram=20GB`. Raises UsageError.

    given_as: the option, for messages.
    """
    shown = printable(text)
    written = _WRITTEN.fullmatch(text.strip())
    if written is None:
        raise UsageError(f"{given_as} {shown!r} is no threshold", remedy="write 12GB or 80%")
    metric, amount = (written["metric"] or "").strip(), written["amount"]
    percent = _PERCENT.fullmatch(amount)
    share = None if percent is None else float(percent[1]) / 100
    size = parse_bytes(amount) if share is None else None
    if share is not None and not 0 < share <= 1:
        raise UsageError(
            f"{given_as} {shown} is out of range", remedy="give more than 0% and at most 100%"
        )
    if size is not None and size <= 0:
        raise UsageError(f"{given_as} {shown} is always passed", remedy="write 12GB or 80%")
    return Threshold(
        level=level, metric=metric, text=f"{given_as} {shown}", size_bytes=size, share=share
    )


def one_gpu(metric: str) -> bool:
    """Whether a metric is a tree's part of one of several GPUs (`gpu0_vram_bytes`)."""
    return _ONE_GPU.fullmatch(metric) is not None
