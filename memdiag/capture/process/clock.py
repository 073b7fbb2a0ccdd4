"""Time, and budgets for a share of it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A source of time."""

    def now_s(self) -> float:
        """Seconds on the monotonic clock, which the probe's events use too."""


class MonotonicClock:
    """The system's monotonic clock."""

    def now_s(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""
        return time.monotonic()


class Budget:
    """Limits repeated work to a share of the time: it is due again after cost / share."""

    def __init__(self, *, clock: Clock, share: float, at_least_s: float = 0.0) -> None:
        self._clock = clock
        self._share = share
        self._at_least_s = at_least_s
        self._next_s = float("-inf")

    def due(self) -> bool:
        """Return True if the work may be done again."""
        return self._clock.now_s() >= self._next_s

    def spent(self, cost_s: float) -> None:
        """Account for work that was just done, and took this long."""
        self._next_s = self._clock.now_s() + max(cost_s / self._share, self._at_least_s)
