"""Growth evidence that may be looked at after every floor without inflating false alarms."""

from __future__ import annotations

import math

import numpy as np

# Bets of different courage, averaged: a small one wins on slow drifts in noise, a large one on
# clean growth (chosen, eight from .1 to .95).
BETS = np.linspace(0.1, 0.95, 8)
START_EVERY = 16  # starts of a plateau that are told apart, in floors: chosen
ALARM = 100.0  # by Ville's inequality P(ever reached without growth) <= 1/ALARM


class RankTest:
    """A rank-based e-process against "the floors have reached their plateau".

    If m_s, m_s+1, ... are exchangeable, the smoothed sequential ranks

        r_k = (#{s<=j<k: m_j < m_k} + U #{s<=j<=k: m_j = m_k}) / (k - s + 1)

    are independent and uniform on (0, 1) (Vovk, Gammerman & Shafer 2005, ch. 2), so
    prod_{k>=c} (1 + bet (2 r_k - 1)) is a martingale that starts at 1 for every bet and every
    moment c at which betting begins, and so is their mean: over the bets, and over c = s, s+1, ...
    with weight 1/capacity each (what is not yet bet is held). Without the latter a long plateau
    would use up the wealth that a later leak is to be shown with. The null is that the plateau was
    reached at *some* start s within the first half; the minimum over those starts is at most the
    one of the true s, hence an e-process for their union. (Every 16th start will do: what is
    exchangeable from s on is so from any later start on.) U is drawn from a seeded generator, so
    the same floors give the same value.

    Memory and time per floor are proportional to the number of floors kept by the caller.
    """

    def __init__(self, capacity: int, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._floors = np.empty(capacity)
        self._starts = np.arange(0, capacity, START_EVERY)
        self._wealth = np.zeros((len(self._starts), len(BETS)))  # what is being bet
        self._stake = 1.0 / capacity
        self._count = 0

    def add(self, floor: float) -> None:
        """Take one more floor; at most `capacity` of them."""
        k = self._count
        self._floors[k] = floor
        known = self._floors[: k + 1]
        starts = self._starts[: k // START_EVERY + 1]
        less = np.add.reduceat(known < floor, starts, dtype=np.float64)[::-1].cumsum()[::-1]
        same = np.add.reduceat(known == floor, starts, dtype=np.float64)[::-1].cumsum()[::-1]
        rank = (less + self._random.uniform() * same) / (k + 1 - starts)
        self._wealth[: len(starts)] += self._stake
        self._wealth[: len(starts)] *= 1 + BETS * (2 * rank[:, None] - 1)
        self._count = k + 1

    @property
    def log_value(self) -> float:
        """Natural logarithm of the e-process now; it says "growth" above log(ALARM)."""
        if self._count == 0:
            return 0.0
        rows = self._count // 2 // START_EVERY + 1
        held = 1 - self._stake * (self._count - self._starts[:rows])
        return math.log(float((self._wealth[:rows].mean(axis=1) + held).min()))


def threshold(level: int) -> float:
    """log e-value that alarms at the `level`-th coarsening, 0, 1, ...

    Each coarsening starts a process of its own; 1/ALARM is divided among them as
    1 / ((level+1)(level+2)), which sums to 1.
    """
    return math.log(ALARM * (level + 1) * (level + 2))
