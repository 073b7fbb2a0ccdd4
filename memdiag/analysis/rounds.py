"""Passes over the data and cycles of phases: how often has everything that a job does come round?

A cache that is filled by a pass over the data is full after one; what the first evaluation or
checkpoint takes is taken once each has been. So a part of all warm-ups (`Policy.round_share`) ends
with rounds and not with steps, and growth that has outlasted rounds has outlasted those:

    S(length | rounds) = S(length) * (1 - share + share * S_rounds(rounds))
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from memdiag.model import AxisKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.model import Axis, Floats, Phases, Series
    from memdiag.policy import Policy

    Mask = NDArray[np.bool_]

COUNTED_IN_UNITS = frozenset({AxisKind.STEP, AxisKind.SECONDS, AxisKind.REQUEST})
"""Kinds of axes that rounds tell more than: epochs and cycles are rounds themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """What is known of the rounds of a job, on the axis that it is judged on.

    x_per_pass: axis units of a pass over the data, None where not known.
    begins: for each tagged phase, where its events begin, ascending, shape (events,).
    """

    x_per_pass: float | None = None
    begins: tuple[Floats, ...] = field(default=())


UNKNOWN = Rounds()


def rounds_of(series: Series, axis: Axis, x: Floats, used: Mask) -> Rounds:
    """What a series tells of its rounds.

    axis, x: what it is judged on; used: which samples are judged, shape (n,). Nothing where the
    axis counts rounds itself.
    """
    if axis.kind not in COUNTED_IN_UNITS:
        return UNKNOWN
    passes = series.x_per_epoch if axis == series.axis else None
    begins = () if series.phases is None else _begins(series.phases, x, used)
    return Rounds(x_per_pass=passes, begins=begins)


def _begins(phases: Phases, x: Floats, used: Mask) -> tuple[Floats, ...]:
    """Where the events of each phase begin; a first one that never comes again is start-up."""
    at, codes = x[used], phases.codes[used]
    order = np.argsort(at, kind="stable")
    at, codes = at[order], codes[order]
    turns = np.flatnonzero(np.diff(codes, prepend=-2))
    begun = [at[turns[codes[turns] == code]] for code in np.unique(codes) if code >= 0]
    first = at[codes >= 0][:1]
    return tuple(b for b in begun if len(b) > 1 or b[0] != first[0])


def rounds_odds(rounds: Rounds, begin: float, end: float, kind: AxisKind, policy: Policy) -> float:
    """Factor, 1 or more, on the odds of a leak for growth from `begin` to `end` (axis units)."""
    passes = _passes(rounds, end - begin, kind, policy)
    cycles = _cycles(rounds, begin, end, kind, policy)
    still = min(
        policy.prior.warmup_lengths[AxisKind.EPOCH].survival(passes),
        policy.prior.warmup_lengths[AxisKind.INDEX].survival(cycles),
    )
    return 1.0 / (1.0 - policy.prior.round_share + policy.prior.round_share * still)


def _least(kind: AxisKind, policy: Policy) -> float:
    """Rounds shorter than this go with the steps and tell nothing that they do not."""
    return policy.prior.least_round * policy.prior.warmup_lengths[kind].median


def _passes(rounds: Rounds, length: float, kind: AxisKind, policy: Policy) -> float:
    """Passes over the data during growth, of which the first was seen whole; else 0."""
    if rounds.x_per_pass is None or rounds.x_per_pass < _least(kind, policy):
        return 0.0
    passes = length / rounds.x_per_pass
    return passes if passes >= 1 else 0.0


def _cycles(rounds: Rounds, begin: float, end: float, kind: AxisKind, policy: Policy) -> float:
    """Whole cycles of the rarest phase during growth, two or more; 0 where a phase does not come
    round evenly (tags of single steps that are met by chance do not)."""
    fewest = 0.0
    for at in rounds.begins:
        gaps = np.diff(at[(at >= begin) & (at <= end)])
        if len(gaps) < policy.prior.least_cycles or gaps.mean() < _least(kind, policy):
            return 0.0
        if float(gaps.std()) > policy.prior.even_rounds * float(gaps.mean()):
            return 0.0
        fewest = min(fewest or len(gaps), len(gaps))
    return fewest
