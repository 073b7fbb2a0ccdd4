"""Growth evidence that may be looked at after every floor without inflating false alarms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.policy import DEFAULT, Policy

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


class RankTest:
    """A rank-based e-process against "the floors have reached their plateau".

    If m_s, m_s+1, ... are exchangeable, the smoothed sequential ranks

        r_k = (#{s<=j<k: m_j < m_k} + U #{s<=j<=k: m_j = m_k}) / (k - s + 1)

    are independent and uniform on (0, 1) (Vovk, Gammerman & Shafer 2005, ch. 2), so
    prod_{k>=c} (1 + bet (2 r_k - 1)) is a martingale that starts at 1 for every bet and every
    moment c at which betting begins, and so is their mean: over the bets, and over c = s, s+1, ...
    with the weights of `_stakes` (what is not yet bet is held). Without the latter a long plateau
    would use up the wealth that a later leak is to be shown with. The null is that the plateau was
    reached at *some* start s within the first half; the minimum over those starts is at most the
    one of the true s, hence an e-process for their union. (Every 16th start will do: what is
    exchangeable from s on is so from any later start on.) U is drawn from a seeded generator, so
    the same floors give the same value.

    Memory and time per floor are proportional to the number of floors kept by the caller.
    """

    def __init__(self, capacity: int, seed: int = 0, policy: Policy = DEFAULT) -> None:
        common = policy.common
        self._bets = np.linspace(common.little, 1 - common.slight, common.blocks)
        self._every = 2 * common.blocks
        self._random = np.random.default_rng(seed)
        self._floors = np.empty(capacity)
        self._starts = np.arange(0, capacity, self._every)
        self._wealth = np.zeros((len(self._starts), len(self._bets)))  # what is being bet
        self._stakes = _stakes(capacity)  # bet this many floors after the start
        self._put_in = self._stakes.cumsum()
        self._count = 0

    def add(self, floor: float) -> None:
        """Take one more floor; at most `capacity` of them."""
        k = self._count
        self._floors[k] = floor
        known = self._floors[: k + 1]
        starts = self._starts[: k // self._every + 1]
        less = np.add.reduceat(known < floor, starts, dtype=np.float64)[::-1].cumsum()[::-1]
        same = np.add.reduceat(known == floor, starts, dtype=np.float64)[::-1].cumsum()[::-1]
        rank = (less + self._random.uniform() * same) / (k + 1 - starts)
        self._wealth[: len(starts)] += self._stakes[k - starts, None]
        self._wealth[: len(starts)] *= 1 + self._bets * (2 * rank[:, None] - 1)
        self._count = k + 1

    @property
    def log_value(self) -> float:
        """Natural logarithm of the e-process now; `threshold` is the value that shows growth."""
        if self._count == 0:
            return 0.0
        rows = self._count // 2 // self._every + 1
        held = 1 - self._put_in[self._count - 1 - self._starts[:rows]]
        return math.log(float((self._wealth[:rows].mean(axis=1) + held).min()))


def log_value(floors: Floats, policy: Policy) -> float:
    """That of the test after these floors."""
    test = RankTest(len(floors), policy=policy)
    for floor in floors.tolist():
        test.add(floor)
    return test.log_value


def _stakes(capacity: int) -> Floats:
    """Part of the wealth, 0..1, that is put in 0, 1, ... floors after the start; adds to 1.

    Half of it evenly, half of it at 0, 1, 2, 4, 8, ...: growth from the start is common, and pays
    for the choice among few moments only.
    """
    stakes = np.full(capacity, 1 / (2 * capacity))
    early = np.concatenate(([0], 2 ** np.arange(int(math.log2(capacity)))))
    stakes[early] += 1 / (2 * len(early))
    return stakes


def threshold(level: int, chance: float = DEFAULT.live.chance) -> float:
    """log e-value that alarms at the `level`-th coarsening, 0, 1, ...

    By Ville's inequality an e-process without growth ever reaches 1 / chance with probability
    `chance` at most. Each coarsening starts a process of its own; `chance` is divided among them
    as 1 / ((level+1)(level+2)), which sums to 1.
    """
    return math.log((level + 1) * (level + 2) / chance)
