"""The limit that is reached first: of the host, the container, a GPU, a process or the user."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memdiag.analysis.policy import PAGES
from memdiag.values.findings import Finding, FirstLimit, Interval, LimitHit
from memdiag.values.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A limit that a series reaches. left: time after the last sample; in seconds, or on the axis
    where the source has no clock."""

    series: int
    finding: Finding
    hit: LimitHit
    left: Interval


def first_limit(findings: Sequence[Finding], verdict: Verdict) -> FirstLimit | None:
    """The limit that is reached first if the trends continue; None where none is.

    A leak comes before inconclusive growth, however soon that would reach a limit; and such growth
    counts only where it is evident, and the `verdict` on the recording is inconclusive as well.
    """
    open_ = [Verdict.INCONCLUSIVE] if verdict is Verdict.INCONCLUSIVE else []
    for kind in (Verdict.LEAK, *open_):
        found = [c for c in _candidates(findings) if c.finding.verdict is kind]
        if found:
            return _first(found)
    return None


def _first(found: Sequence[_Candidate]) -> FirstLimit:
    timed = [c for c in found if c.hit.in_s is not None] or found
    timed = [c for c in timed if not any(_is_read_more_often(other, c) for other in timed)]
    first = min(timed, key=lambda c: c.left.value)
    rivals = [
        c
        for c in timed
        if c.hit.limit != first.hit.limit
        and c.finding.metric != first.finding.metric
        and c.left.low < first.left.value
    ]
    rival = min(rivals, key=lambda c: c.left.value, default=None)
    is_leak = first.finding.verdict is Verdict.LEAK
    return FirstLimit(
        limit=first.hit.limit,
        limit_bytes=first.hit.limit_bytes,
        series=first.series,
        at_x=first.hit.at_x,
        left_s=None if first.hit.in_s is None else first.left,
        confidence=first.finding.confidence if is_leak else None,
        rival="" if rival is None else rival.hit.limit,
    )


def _is_read_more_often(other: _Candidate, candidate: _Candidate) -> bool:
    """Return True for pages of the same process that reach the same limit, and whose rate is known
    better: it has more than twice as many readings."""
    same = other.finding.process == candidate.finding.process
    same = same and other.hit.limit == candidate.hit.limit
    pages = {other.finding.role, candidate.finding.role} <= PAGES
    return same and pages and candidate.finding.samples < other.finding.samples // 2


def _candidates(findings: Sequence[Finding]) -> Iterator[_Candidate]:
    for at, finding in enumerate(findings):
        if finding.growth_per_x is None or finding.growth_per_x.low <= 0:
            continue
        for hit in finding.limit_hits:
            yield _Candidate(series=at, finding=finding, hit=hit, left=_left(finding, hit))


def _left(finding: Finding, hit: LimitHit) -> Interval:
    """The hit's interval as time after the last sample, at the pace that gave its `in_s`."""
    ahead = hit.at_x.value - finding.last_x
    pace = hit.in_s / ahead if hit.in_s is not None and ahead > 0 else 1.0

    def after(x: float) -> float:
        return max(0.0, (x - finding.last_x) * pace) if math.isfinite(x) else x

    return Interval(value=after(hit.at_x.value), low=after(hit.at_x.low), high=after(hit.at_x.high))
