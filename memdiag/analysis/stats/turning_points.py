"""Slow waves: memory that swings up and down over many readings, as with the day's load.

A wave has no sharp fall that would part one cycle from the next, so its turning points are found as
a zigzag: a high is one when the level has since come down by half of the whole range, and a low one
when it has come up by as much (the filter of directional change; Glattfelder, Dupuis and Olsen,
Quantitative Finance 11 (2011) 599-614, with a threshold of its own for each series). Whether waves
rise as a whole is judged on their turning points: highs and lows on two parallel lines,

    turning point = level of its kind + pace * x + scatter
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.stats.median import mean
from memdiag.analysis.stats.slope_test import line, upper_tail

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """falls: whole falls from a high to a low. height: from the lows' line to that of the highs.
    rise: of both lines over the whole stretch. p_rise: one-sided p-value of "they do not rise".
    x, y: the turning points in order, highs brought down by the height, shape (n,). scatter: their
    standard deviation about the line.
    """

    falls: int
    height: float
    rise: float
    p_rise: float
    x: Floats
    y: Floats
    scatter: float

    def continues(self, share: float) -> bool:
        """Return True if the later half of the turning points rises at `share` of the whole pace or
        more."""
        half = len(self.x) // 2
        pace = line(self.x, self.y)[1]
        return line(self.x[half:], self.y[half:])[1] >= share * pace > 0


def waves(x: Floats, y: Floats, least: float, turn: float) -> Waves | None:
    """The waves of y over x, shape (n,); None with fewer than two highs and two lows.

    least: no wave is lower than that (noise). turn: part of the range, 0..1. Waves are looked for
    about the straight line through all of y, so that growth hides none.
    """
    if len(y) < 2:
        return None
    level, slope = line(x, y)
    about = y - level - slope * (x - mean(x))
    need = max(turn * float(np.ptp(about)), least)
    highs, lows = turns(about, need) if need > 0 else ([], [])
    if len(highs) < 2 or len(lows) < 2:
        return None
    at = np.concatenate((x[highs] - x[highs].mean(), x[lows] - x[lows].mean()))
    value = np.concatenate((y[highs] - y[highs].mean(), y[lows] - y[lows].mean()))
    spread = float(at @ at)
    pace = float(at @ value) / spread
    rest, freedom = value - pace * at, len(at) - 3  # exact: two levels and a pace
    scatter = math.sqrt(float(rest @ rest) / freedom)
    error = scatter / math.sqrt(spread)
    steep = pace / error if error > 0 else math.copysign(1e9, pace)  # exact: stands for infinity
    middle = float(y[highs].mean() - y[lows].mean())
    height = middle - pace * float(x[highs].mean() - x[lows].mean())
    order = np.argsort([*highs, *lows])
    return Waves(
        falls=min(len(highs), len(lows)),
        height=height,
        rise=pace * float(x[-1] - x[0]),
        p_rise=upper_tail(steep, freedom),
        x=np.concatenate((x[highs], x[lows]))[order],
        y=np.concatenate((y[highs] - height, y[lows]))[order],
        scatter=scatter,
    )


def turns(y: Floats, need: float) -> tuple[list[int], list[int]]:
    """Indices of the highs and of the lows of `y`, shape (n,), each confirmed by a turn of `need`.

    The first extreme, before which no other was, and the last, which nothing confirms, are none.
    """
    highs: list[int] = []
    lows: list[int] = []
    high = low = 0
    rising: bool | None = None
    values = y.tolist()
    for i, value in enumerate(values):
        high, low = (i if value > values[high] else high), (i if value < values[low] else low)
        if rising is not False and value <= values[high] - need:
            if rising:
                highs.append(high)
            rising, low = False, i
        elif rising is not True and value >= values[low] + need:
            if rising is False:
                lows.append(low)
            rising, high = True, i
    return highs, lows
