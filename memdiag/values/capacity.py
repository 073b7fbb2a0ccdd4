"""How much room a run takes: what somebody who chooses a card or a container wants to know."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Memory(enum.Enum):
    """What has a size that one can choose."""

    DEVICE = "device"  # a card
    HOST = "host"  # a container, a machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How much of one memory the run requires.

    memory: which memory. series: index of the series that it is derived from.
    is_bounded: memory has stabilized. peak_bytes: peak, or the forecast for `until_x`.
    until_x: the planned end, if memory still grows; null if it grows without end.
    needs_bytes: smallest common size that holds the peak; null if none does.
    comfortable_bytes: smallest common size with a margin; null if none does.
    limit: name of the tightest limit that applies now, or "". limit_bytes: its size, or null.
    """

    memory: Memory
    series: int
    is_bounded: bool
    peak_bytes: float
    until_x: float | None = None
    needs_bytes: int | None = None
    comfortable_bytes: int | None = None
    limit: str = ""
    limit_bytes: int | None = None

    @property
    def headroom_bytes(self) -> float | None:
        """The limit minus the peak; negative if the run does not fit."""
        return None if self.limit_bytes is None else self.limit_bytes - self.peak_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyForecast:
    """The forecast from the first half of a run that ran out of memory.

    series: index of the series of that memory. limit_bytes: the limit that was reached.
    seen_until_x: last position that the forecast used. at_x: where the limit was forecast.
    low_x: lower end of its 95% interval. high_x: upper end; null if the growth might have stopped.
    confidence: probability by then that it was a leak; null if inconclusive.
    """

    series: int
    limit_bytes: int
    seen_until_x: float
    at_x: float
    low_x: float
    high_x: float
    confidence: float | None
