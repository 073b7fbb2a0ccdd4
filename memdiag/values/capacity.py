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
    """How much room the run takes in one memory.

    series: index of the recording's series that tells. is_bounded: its memory has settled.
    until_x: where it has not, the planned end that `peak_bytes` is for; None: it grows for ever.
    needs_bytes, comfortable_bytes: the smallest size sold that holds it, and with room to spare;
        None where none does. limit, limit_bytes: the tightest limit that holds for it now.
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
        """What the limit leaves above the peak; negative where it does not fit."""
        return None if self.limit_bytes is None else self.limit_bytes - self.peak_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """What a run that a limit of memory ended had said of that when half of it was over.

    series: index of the recording's series of that memory; positions are on its axis.
    seen_until_x: last position that was judged. at_x, low_x, high_x: where it was to reach
    `limit_bytes`, with its 95 % interval (`high_x` infinite where growth might have stopped).
    confidence: probability, by then, that it was a leak; None where that could not be told yet.
    """

    series: int
    limit_bytes: int
    seen_until_x: float
    at_x: float
    low_x: float
    high_x: float
    confidence: float | None
