"""A series of any length in constant memory: floors of bins that double their width."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.stats.eprocess import RankTest, threshold

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats

CAPACITY = 1024  # bins: a few times what the decision segments, so that recent ones stay fine


class Floors:
    """The lowest reading of every bin, with where and when it was read.

    A bin holds `width` samples. When `capacity` bins are full, neighbors are merged and the width
    doubles. Only whole bins count. merges: how often that happened.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._bins = np.empty((3, capacity))  # floor, x, at_s
        self._count = 0
        self._test = RankTest(capacity)
        self._bin: tuple[float, float, float] | None = None
        self._in_bin = 0
        self.merges = 0
        self.samples = 0

    def add(self, y: float, x: float, at_s: float) -> None:
        """One sample."""
        self.samples += 1
        if self._bin is None or y < self._bin[0]:
            self._bin = (y, x, at_s)
        self._in_bin += 1
        if self._in_bin >= self.width:
            self._close_bin()

    def _close_bin(self) -> None:
        assert self._bin is not None
        self._bins[:, self._count] = self._bin
        self._test.add(self._bin[0])
        self._count += 1
        self._bin, self._in_bin = None, 0
        if self._count == self._capacity:
            self._merge()

    def _merge(self) -> None:
        """Halve the bins: of each pair the lower floor stays. The test starts anew on them."""
        self._count = self._capacity // 2
        pairs = self._bins.reshape(3, self._count, 2)
        lower = np.argmin(pairs[0], axis=1)
        self._bins[:, : self._count] = pairs[:, np.arange(self._count), lower]
        self.merges += 1
        self._test = RankTest(self._capacity)
        for floor in self._bins[0, : self._count]:
            self._test.add(float(floor))

    def __len__(self) -> int:
        return self._count

    @property
    def width(self) -> int:
        """Samples in a bin."""
        return 1 << self.merges

    @property
    def rises(self) -> bool:
        """Growth is evident, however often this was asked."""
        return self._test.log_value >= threshold(self.merges)

    @property
    def values(self) -> tuple[Floats, Floats, Floats]:
        """(floors, x, at_s), shape (len,) each."""
        floors, x, at_s = (np.array(row[: self._count]) for row in self._bins)
        return floors, x, at_s
