"""Staircases: growth by jumps between flat treads, as pools and caching allocators show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.decision.regimes import RegimeFit
from memdiag.analysis.policy import Policy
from memdiag.analysis.stats.changepoint import Piece
from memdiag.analysis.stats.median import median
from memdiag.analysis.stats.rest_prediction import longest_rest

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase:
    """The upward steps of a series.

    at: positions of the steps, shape (k,). level: level after each, shape (k,).
    waited: axis units since the last step. first_bin: bin of the first tread.
    """

    at: Floats
    level: Floats
    waited: float
    first_bin: int

    @property
    def median_gap(self) -> float:
        """Median distance between steps."""
        return median(np.diff(self.at))

    @property
    def still_to_wait(self) -> float:
        """Axis units until the staircase counts as ended; 0 or less where it does."""
        return longest_rest(np.diff(self.at)) - self.waited


def _treads(fit: RegimeFit, edge_bins: int) -> tuple[Piece, ...]:
    """Regimes without the shortest ones, which are what bins make of an edge."""
    pieces = fit.segmentation.pieces
    inner = tuple(p for p in pieces[1:-1] if p.flat or p.last - p.first > edge_bins)
    return (pieces[0], *inner, pieces[-1]) if len(pieces) > 1 else pieces


def _ends_on_edge(fit: RegimeFit, edge_bins: int) -> bool:
    last = fit.segmentation.pieces[-1]
    return not last.flat and last.slope > 0 and last.last - last.first <= edge_bins


def staircase(fit: RegimeFit, policy: Policy) -> Staircase | None:
    """The last unbroken run of upward steps between flat treads, at least two, else None."""

    common, y = policy.common, fit.binned.y
    ends_on_edge = _ends_on_edge(fit, common.fewest)
    if ends_on_edge:  # its tread is too short yet to be seen as one
        y = y.copy()
        y[fit.segmentation.pieces[-1].first :] = y[-1]
    pieces, x = _treads(fit, common.fewest), fit.binned.x
    at: list[float] = []
    level: list[float] = []
    jumps: list[float] = []
    first = pieces[-1].first
    jump = 0.0
    for left, right in zip(reversed(pieces[:-1]), reversed(pieces[1:]), strict=True):
        jump = median(y[right.first : right.last]) - median(y[left.first : left.last])
        if jump <= max(common.margin * fit.segmentation.noise, common.noises * fit.floor):
            break
        rise = abs(left.slope) * float(x[left.last - 1] - x[left.first])
        usual = sum(jumps) / max(len(jumps), 1)
        if not left.flat and rise > common.short_share * max(jump, usual):
            break
        if jumps and jump > common.cycles * usual:
            break
        if jumps and jump < usual / common.cycles:  # within a tread
            first = left.first
            continue
        jumps.append(jump)
        at.append(float(x[right.first]))
        level.append(median(y[right.first : right.last]))
        first = left.first
    if len(at) < 2 or level[0] - level[-1] + jump < common.noises * fit.prepared.noise:
        return None
    last = pieces[-1]
    last_rise = abs(last.slope) * float(x[-1] - x[last.first])
    if not (last.flat or ends_on_edge) and last_rise > common.short_share * sum(jumps) / len(jumps):
        return None
    return Staircase(
        at=np.array(at[::-1]),
        level=np.array(level[::-1]),
        waited=float(x[-1]) - at[0],
        first_bin=first,
    )
