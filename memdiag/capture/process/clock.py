"""Time, and keeping what costs within a share of it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now_s(self) -> float:
        """Seconds on a clock that never goes back (the probe's events use the same one)."""


class MonotonicClock:
    """The machine's own clock."""

    def now_s(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""
        return time.monotonic()


class Budget:
    """Keeps something that costs within a share of the time: no sooner than cost / share."""

    def __init__(self, *, clock: Clock, share: float, at_least_s: float = 0.0) -> None:
        self._clock = clock
        self._share = share
        self._at_least_s = at_least_s
        self._next_s = float("-inf")

    def due(self) -> bool:
        """Whether it may be done again."""
        return self._clock.now_s() >= self._next_s

    def spent(self, cost_s: float) -> None:
        """It was done just now, and took this long."""
        self._next_s = self._clock.now_s() + max(cost_s / self._share, self._at_least_s)
