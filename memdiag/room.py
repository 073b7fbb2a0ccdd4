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
