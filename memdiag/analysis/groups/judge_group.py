"""Which ranks of a job leak.

The ranks of a job do the same work, so what they have in common (warm-up, sequence lengths, caches)
is removed by comparing each with the median of all at the same steps. What is left of a rank that
leaks alone is a trend; the median of all shows a leak of all.

Each rank of each metric is tested twice: whether its own memory grows, and whether it grows more
than the median. Both tests are those of Perron and Yabu (`slope_test.trend`), valid for noise with
and without a unit root. The p-values of a job are adjusted by Holm's procedure (Scand. J. Statist.
6 (1979) 65-70), which controls the family-wise error for any dependence: a healthy job has a rank
called leaking with probability `GroupPolicy.error` at most, if the single tests have their level.
Since ranks have trends of their own that no model of noise knows, a rank must also differ from the
others by more than they differ among each other.

A rank that the rules for a single series call a leak needs only that, and growth of its own; one
that they call stable or a warm-up needs overwhelming evidence. If many ranks are called a leak, or
nearly all grow and what they have in common is a leak by these rules, all that grow alike leak.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.diagnose import judge
from memdiag.analysis.groups.holm import adjusted
from memdiag.analysis.parameters import number
from memdiag.analysis.stats.noise import MAD
from memdiag.analysis.stats.slope_test import trend
from memdiag.values.groups import GroupFinding, GroupKind, Member
from memdiag.values.measurements import Axis, AxisKind, Recording, Role, Series, Unit
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPolicy:
    """The numbers of a verdict on a job."""

    error: float = number(
        1e-4,
        "1",
        "adjusted p-value at which a rank leaks; the test has up to nine times its level for noise "
        "close to a random walk",
        "python benchmarks/groups.py",
    )
    grid: int = number(48, "points", "positions at which ranks are compared")
    skipped: float = number(0.3, "1", "part of the run at its beginning that may be warm-up")
    lasting: float = number(0.5, "1", "least slope of the last half of the rest, over that of all")
    material: float = number(0.002, "1", "least growth over the rest, over the level")
    clear: float = number(4.0, "1", "least growth over the rest, over its noise")
    outlying: float = number(6.0, "1", "least distance from other ranks' slopes, in their spread")
    common: float = number(0.4, "1", "share of leaking ranks that have a cause in common")
    with_others: float = number(0.05, "1", "p-value of growth of a rank, if most ranks leak")
    most: float = number(0.8, "1", "share of growing ranks from which they are judged together")
    same_cause: float = number(0.2, "1", "least rate of a rank, over that of others that leak")
    overwhelming: float = number(1e-6, "1", "p-value that outweighs a rank's own verdict")
    similar: float = number(0.3, "1", "most spread of rates that are called the same, over them")
    fewest: int = number(3, "ranks", "fewest ranks with a median to compare with")
    behind: float = number(0.9, "1", "part of the others' steps below which a rank is behind")


DEFAULT = GroupPolicy()
_OF_NODES = (Role.HOST.value,)
# The most telling first: of several metrics that leak, the first is named.
_ROLES = (
    Role.DEVICE_ALLOCATED,
    Role.IN_USE,
    Role.UNIQUE,
    Role.RESIDENT,
    Role.DEVICE_RESERVED,
    Role.DEVICE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rank:
    """One metric of a rank on the grid.

    slope: per unit of the axis. own, apart: p-values of growth, and of more growth than the others.
    grows: enough to matter, to the end. is_apart: its slope is beyond those of the others.
    is_clear: it grows apart from the others beyond noise, to the end. lasts: to the end.
    """

    member: Member
    slope: float
    own: float
    apart: float
    grows: bool
    is_apart: bool
    is_clear: bool
    lasts: bool

    @property
    def leaks(self) -> bool:
        """Return True if the rules for a single series call it a leak."""
        return self.member.verdict is Verdict.LEAK


def judge_group(
    name: str,
    members: Sequence[Member],
    policy: GroupPolicy = DEFAULT,
    *,
    world_size: int | None = None,
) -> GroupFinding:
    """The finding on a job with these members.

    name: of the job. world_size: number of its ranks, None if unknown.
    """
    by_metric: dict[str, list[Member]] = defaultdict(list)
    hosts: dict[str, list[Member]] = defaultdict(list)
    for member in members:
        into = hosts if member.role in _OF_NODES else by_metric
        into[member.metric].append(member)
    tested = {metric: _tested(group, policy) for metric, group in by_metric.items()}
    apart = _adjusted(tested, lambda one: one.apart)
    leaking = {
        metric: found
        for metric, ranks in tested.items()
        if (found := _leaking(metric, ranks, apart, policy))
    }
    everyone = sorted({member.rank for member in members}, key=_by_number)
    metric = min(
        leaking,
        key=lambda one: (-len(leaking[one]), _telling(tested[one][0].member.role)),
        default="",
    )
    ranks = leaking.get(metric, [])
    names = sorted({one.member.rank for one in ranks}, key=_by_number)
    nodes = {member.node for member in members if member.rank in names}
    p_values = apart if len(ranks) < len(everyone) else _adjusted(tested, lambda one: one.own)
    first = _first_limit(members if not names else [one.member for one in ranks])
    return GroupFinding(
        group=name,
        verdict=Verdict.LEAK if names else _without_leak(members),
        kind=_kind(ranks, members, policy),
        ranks=len(everyone),
        leaking=tuple(names),
        missing=_missing(everyone, world_size),
        behind=_behind(members, policy),
        metric=metric,
        unit=ranks[0].member.unit if ranks else "",
        axis=ranks[0].member.axis if ranks else "",
        growth_per_x=float(np.median([one.slope for one in ranks])) if ranks else None,
        p_value=max((p_values[metric, one.member.rank] for one in ranks), default=None),
        limit_rank=first.rank if first else "",
        limit_name=first.limit_name if first else "",
        limit_in_s=first.limit_in_s if first else None,
        crowded=tuple(sorted(_crowded(hosts, policy) - nodes)),
    )


def _tested(members: Sequence[Member], policy: GroupPolicy) -> list[_Rank]:
    """The tests of every rank with readings, on the part of the steps that most ranks have."""
    members = [one for one in members if len(one.points) > policy.fewest]
    if not members:
        return []
    ends = [one.points[-1][0] for one in members]
    begin = float(np.median([one.points[0][0] for one in members]))
    grid = np.linspace(begin, float(np.median(ends)), policy.grid)
    values = np.array([_on(grid, one) for one in members])
    grid, values = grid[_after(policy) :], values[:, _after(policy) :]
    healthy = np.array([one.verdict in STABLE_OR_WARMUP for one in members])
    if healthy.sum() < policy.fewest:
        healthy[:] = True
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # steps that no rank has
        # Ranks have levels of their own: from where all have readings, if they have.
        shared = np.isfinite(values).all(axis=0)
        enough = shared.sum() > policy.fewest
        level = np.nanmedian(values[:, shared] if enough else values, axis=1, keepdims=True)
        middle = np.nanmedian((values - level)[healthy], axis=0)
    lone = len(members) < policy.fewest
    own = [_trend(grid, row, policy) for row in values]
    apart = own if lone else [_trend(grid, row - middle, policy) for row in values]
    slopes = np.array([one.slope for one in apart])
    usual = slopes[healthy]
    spread = MAD * float(np.median(np.abs(usual - np.median(usual))))
    far = slopes - np.median(usual) > policy.outlying * spread
    return [
        _Rank(
            member=member,
            slope=mine.slope,
            own=mine.p_value,
            apart=max(mine.p_value, than.p_value),
            grows=mine.lasts and mine.is_material,
            is_apart=lone or bool(is_far),
            is_clear=than.lasts and than.is_clear,
            lasts=than.lasts,
        )
        for member, mine, than, is_far in zip(members, own, apart, far, strict=True)
    ]


def _after(policy: GroupPolicy) -> int:
    return round(policy.skipped * policy.grid)


def _on(grid: Floats, member: Member) -> Floats:
    """The member's values at the steps of the grid; NaN where it has none."""
    x, y = np.array(member.points).T
    near = (x[-1] - x[0]) / max(len(x) - 1, 1)  # points are the middles of parts
    values = np.interp(grid, x, y)
    return np.where((grid >= x[0] - near) & (grid <= x[-1] + near), values, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Growth:
    slope: float
    p_value: float
    lasts: bool
    is_material: bool
    is_clear: bool


_NO_GROWTH = _Growth(slope=0.0, p_value=1.0, lasts=False, is_material=False, is_clear=False)


def _trend(grid: Floats, values: Floats, policy: GroupPolicy) -> _Growth:
    held = np.isfinite(values)
    x, y = grid[held], values[held]
    if len(x) <= 2 * policy.fewest:
        return _NO_GROWTH
    level = float(np.abs(y).max())
    found = trend(x, y, 1e-6 * level)  # exact: far below the resolution of readings
    rest = y - y.mean() - found.slope * (x - x.mean())
    noise = MAD * float(np.median(np.abs(rest)))
    rise = found.slope * float(x[-1] - x[0])
    half = len(x) // 2
    late = trend(x[half:], y[half:], 1e-6 * level).slope
    return _Growth(
        slope=found.slope,
        p_value=found.p_growth,
        lasts=found.slope > 0 and late >= policy.lasting * found.slope,
        is_material=rise >= policy.material * level,
        is_clear=rise >= policy.clear * noise,
    )


def _adjusted(
    tested: Mapping[str, Sequence[_Rank]], p_value: Callable[[_Rank], float]
) -> dict[tuple[str, str], float]:
    """The p-value of each rank of each metric, over all tests of the job."""
    keys = [(metric, one.member.rank) for metric, ranks in tested.items() for one in ranks]
    every = [p_value(one) for ranks in tested.values() for one in ranks]
    return dict(zip(keys, adjusted(every), strict=True))


def _leaking(
    metric: str,
    ranks: Sequence[_Rank],
    p_values: Mapping[tuple[str, str], float],
    policy: GroupPolicy,
) -> list[_Rank]:
    """The ranks that leak in one metric."""
    called = [one for one in ranks if one.leaks]
    rising = [one for one in ranks if one.grows and one.own <= policy.error]
    if len(called) < policy.common * len(ranks) and len(rising) >= policy.most * len(ranks):
        called = rising if _leak_together([one.member for one in ranks], policy) else called
    if ranks and len(called) >= policy.common * len(ranks):
        # A cause in common: a rank need not be beyond doubt by itself.
        usual = float(np.median([one.slope for one in called]))
        return [one for one in ranks if _is_usual(one, usual, policy)]
    return [
        one
        for one in ranks
        if one.is_apart and _is_leak(one, p_values[metric, one.member.rank], policy)
    ]


def _leak_together(members: Sequence[Member], policy: GroupPolicy) -> bool:
    """Return True if what the ranks have in common is a leak by the rules for a single series."""
    members = [one for one in members if len(one.points) > policy.fewest]
    begin, end = (float(np.median([one.points[at][0] for one in members])) for at in (0, -1))
    grid = np.linspace(begin, end, policy.grid)
    values = np.array([_on(grid, one) for one in members])
    shared = np.isfinite(values).all(axis=0)
    if shared.sum() <= policy.fewest:
        return False
    level = np.nanmedian(values[:, shared], axis=1, keepdims=True)
    together = np.nanmean(values - level, axis=0) + float(np.median(level))
    like = members[0]
    series = Series(
        metric=like.metric,
        column=like.metric,
        role=Role(like.role),
        unit=Unit(like.unit),
        axis=Axis(name=like.axis, kind=AxisKind(like.axis)),
        x=grid,
        y=together,
    )
    return judge(Recording(source="", series=(series,))).verdict is Verdict.LEAK


def _is_usual(rank: _Rank, usual: float, policy: GroupPolicy) -> bool:
    rises = rank.own <= policy.with_others and rank.slope > 0
    return rises and (rank.leaks or rank.slope >= policy.same_cause * usual)


def _is_leak(rank: _Rank, p_value: float, policy: GroupPolicy) -> bool:
    if rank.leaks:
        return rank.lasts and p_value <= policy.error
    is_open = rank.member.verdict not in STABLE_OR_WARMUP
    least = policy.error if is_open else policy.overwhelming
    return rank.grows and rank.is_clear and p_value <= least


def _kind(ranks: Sequence[_Rank], members: Sequence[Member], policy: GroupPolicy) -> GroupKind:
    names = {one.member.rank for one in ranks}
    everyone = {member.rank for member in members if member.role not in _OF_NODES}
    if not names:
        return GroupKind.NONE
    if names == everyone and len(names) > 1:
        slopes = np.array([one.slope for one in ranks])
        spread = float(slopes.std() / max(float(slopes.mean()), 1e-300))
        return GroupKind.ALL if spread <= policy.similar else GroupKind.ALL_DIFFER
    if len(names) == 1:
        return GroupKind.FIRST if names == {"0"} else GroupKind.ONE
    nodes = {one.member.node for one in ranks}
    there = {member.rank for member in members if member.node in nodes and member.rank in everyone}
    return (
        GroupKind.NODE if len(nodes) == 1 and nodes != {""} and there == names else GroupKind.SOME
    )


def _without_leak(members: Sequence[Member]) -> Verdict:
    """What most ranks are; inconclusive if many are."""
    worst: dict[str, Verdict] = {}
    order = (Verdict.STABLE, Verdict.WARMUP, Verdict.INCONCLUSIVE)
    for member in members:
        # A leak of one rank that the others do not confirm is open.
        verdict = Verdict.INCONCLUSIVE if member.verdict is Verdict.LEAK else member.verdict
        before = worst.get(member.rank, Verdict.STABLE)
        worst[member.rank] = max(before, verdict, key=order.index)
    counts = Counter(worst.values())
    return max(order, key=lambda one: counts[one])


def _crowded(hosts: Mapping[str, Sequence[Member]], policy: GroupPolicy) -> set[str]:
    """Nodes on which the memory of the machine grows, and more than on the others."""
    found = set()
    for members in hosts.values():
        by_node = {one.node: one for one in members if one.node}
        if len(by_node) < policy.fewest:
            continue
        ranks = _tested(list(by_node.values()), policy)
        p_values = adjusted([one.apart for one in ranks])
        found |= {
            one.member.node
            for one, p_value in zip(ranks, p_values, strict=True)
            if one.grows and one.is_apart and one.is_clear and p_value <= policy.error
        }
    return found


def _first_limit(members: Sequence[Member]) -> Member | None:
    hits = [one for one in members if one.limit_in_s is not None and math.isfinite(one.limit_in_s)]
    return min(hits, key=lambda one: one.limit_in_s or 0.0, default=None)


def _missing(ranks: Sequence[str], world_size: int | None) -> tuple[str, ...]:
    numbers = {int(rank) for rank in ranks if rank.isdigit()}
    end = max(numbers, default=-1) + 1 if world_size is None else world_size
    if len(numbers) < len(ranks) or end > 2 * len(ranks) + 1:
        return ()  # the ranks have names, or numbers that do not count them
    return tuple(str(one) for one in range(end) if one not in numbers)


def _behind(members: Sequence[Member], policy: GroupPolicy) -> tuple[str, ...]:
    ends: dict[str, float] = {}
    for one in members:  # some metrics are read seldom, and end earlier
        if one.points:
            ends[one.rank] = max(ends.get(one.rank, -math.inf), one.points[-1][0])
    if not ends:
        return ()
    usual = policy.behind * float(np.median(list(ends.values())))
    return tuple(sorted((rank for rank, end in ends.items() if end < usual), key=_by_number))


def _by_number(rank: str) -> tuple[int, str]:
    return (int(rank), "") if rank.isdigit() else (1 << 62, rank)


def _telling(role: str) -> int:
    order = [one.value for one in _ROLES]
    return order.index(role) if role in order else len(order)
