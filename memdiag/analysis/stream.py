"""A series of any length in constant memory: floors of bins that double their width."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.eprocess import CHANCE, RankTest, threshold

if TYPE_CHECKING:
    from memdiag.model import Floats

CAPACITY = 1024  # bins: a few times what the decision segments, so that recent ones stay fine


class Floors:
    """The lowest reading of every bin, with where and when it was read.

    A bin holds `width` units; a unit is a sample, or a cycle where the caller marks cycles. When
    `capacity` bins are full, neighbours are merged and the width doubles. Only whole bins count.
    chance: that the test ever takes floors without growth for growing, 0..1.
    """

    def __init__(
        self, capacity: int = CAPACITY, width: int = 1, *, chance: float = CHANCE, seed: int = 0
    ) -> None:
        self._seed = seed
        self._capacity = capacity
        self._chance = chance
        self._bins = np.empty((3, capacity))  # floor, x, at_s
        self._count = 0
        self._level = 0
        self.width = width
        self._test = RankTest(capacity, seed)
        self._unit: tuple[float, float, float] | None = None
        self._bin: tuple[float, float, float] | None = None
        self._bin_units = 0
        self.samples = 0

    def add(self, y: float, x: float, at_s: float, *, ends_unit: bool) -> None:
        """One sample; `ends_unit`: the unit before it is over (always so without cycles)."""
        if self._unit is not None and ends_unit:
            self._close_unit()
        if self._unit is None or y < self._unit[0]:
            self._unit = (y, x, at_s)
        self.samples += 1

    def _close_unit(self) -> None:
        unit, self._unit = self._unit, None
        assert unit is not None
        if self._bin is None or unit[0] < self._bin[0]:
            self._bin = unit
        self._bin_units += 1
        if self._bin_units >= self.width:
            self._close_bin()

    def _close_bin(self) -> None:
        assert self._bin is not None
        self._bins[:, self._count] = self._bin
        self._test.add(self._bin[0])
        self._count += 1
        self._bin, self._bin_units = None, 0
        if self._count == self._capacity:
            self._merge()

    def _merge(self) -> None:
        """Halve the bins: of each pair the lower floor stays. The test starts anew on them."""
        half = self._capacity // 2
        pairs = self._bins.reshape(3, half, 2)
        lower = np.argmin(pairs[0], axis=1)
        self._count = half
        self._bins[:, : self._count] = pairs[:, np.arange(self._count), lower]
        self.width *= 2
        self._level += 1
        self._test = RankTest(self._capacity, self._seed + self._level)
        for floor in self._bins[0, : self._count]:
            self._test.add(float(floor))

    def __len__(self) -> int:
        return self._count

    @property
    def rises(self) -> bool:
        """Growth is evident, however often this was asked."""
        return self._test.log_value >= threshold(self._level, self._chance)

    @property
    def values(self) -> tuple[Floats, Floats, Floats]:
        """(floors, x, at_s), shape (len,) each."""
        floors, x, at_s = (np.array(row[: self._count]) for row in self._bins)
        return floors, x, at_s
