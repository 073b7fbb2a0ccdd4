"""The values of a job that is judged as one run: its ranks, and what was found in them."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from memdiag.values.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A metric of one rank of a job.

    rank: its number, or the name of its recording. node: "" if unknown. verdict: of the series by
    itself. growth_per_x: growth rate of its last segment; None if unknown. limit_name, limit_in_s:
    the limit that it reaches first. points: (x, y), ascending in x.
    """

    rank: str
    node: str
    metric: str
    role: str
    unit: str
    axis: str
    verdict: Verdict
    growth_per_x: float | None
    limit_name: str
    limit_in_s: float | None
    points: tuple[tuple[float, float], ...]


class GroupKind(enum.Enum):
    """Which ranks of a job leak."""

    NONE = "none"
    ALL = "all"  # at the same rate: the code
    ALL_DIFFER = "all_differ"  # at different rates: what each is given
    ONE = "one"  # its data or its hardware
    FIRST = "first"  # rank 0 alone: logging, checkpoints, evaluation
    NODE = "node"  # all ranks of one node, and no other
    SOME = "some"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFinding:
    """What was found in the recordings of one job.

    group: value of the label that they share. verdict: the verdict on the job. kind: which ranks
    leak. ranks: number of ranks. leaking: ranks that leak. missing: ranks without a recording.
    behind: ranks whose recording ends at less than nine tenths of the steps of the others.
    metric, unit, axis: of the series that leak; "" if none does. growth_per_x: the median growth
    rate of the ranks that leak. p_value: the largest of these ranks, adjusted for the number of
    tests in the job; None if none leaks. limit_rank, limit_name, limit_in_s: the rank that reaches
    a limit first. crowded: nodes whose memory is taken by other programs.
    """

    group: str
    verdict: Verdict
    kind: GroupKind
    ranks: int
    leaking: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    metric: str = ""
    unit: str = ""
    axis: str = ""
    growth_per_x: float | None = None
    p_value: float | None = None
    limit_rank: str = ""
    limit_name: str = ""
    limit_in_s: float | None = None
    crowded: tuple[str, ...] = ()
