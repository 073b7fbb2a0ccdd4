"""The values of runs over time: what was measured of each, and where it changed."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Quantity(enum.Enum):
    """What is compared between runs."""

    PEAK = "peak"
    GROWTH = "growth"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run in a history.

    at: ISO time of its start. path: its recording. commit: "" if unknown. value: of the quantity.
    """

    at: str
    path: str
    commit: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Runs from one on differ from those before.

    since: the first run that differs. before, after: medians of the runs before, back to the change
    before, and of those after, up to the next. runs_before, runs_after: their numbers. p_value: of
    the change by permutations, adjusted for all series of the history.
    """

    since: Run
    before: float
    after: float
    runs_before: int
    runs_after: int
    p_value: float

    @property
    def is_increase(self) -> bool:
        """Return True if there is more after it."""
        return self.after > self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One quantity of one metric over the runs of one group.

    group: values of the labels that the runs share. metric: its name. unit: of the values. axis:
    what growth is per. runs: in the order of time. changes: in the order of time.
    """

    group: str
    quantity: Quantity
    metric: str
    unit: str
    axis: str
    runs: tuple[Run, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Runs over time. runs: their number. groups: that of groups. trends: every series that has
    enough runs. short: number of series with too few of them.
    """

    runs: int
    groups: int
    trends: tuple[Trend, ...]
    short: int
