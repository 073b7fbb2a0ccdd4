"""What holds a series' memory does not grow: then it cannot either.

Pages of a process alone are among all its pages; malloc holds all tensors of the host; beside what
malloc and Python's own allocator hand out, pages have the holes between, which the largest working
set bounds.
"""

from __future__ import annotations

from dataclasses import replace

from memdiag.analysis.decision.across.allocator_metrics import rise
from memdiag.analysis.decision.across.meters import IN_PART, MALLOC, Cross, Meters
from memdiag.analysis.decision.case import Says
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.policy import PAGES
from memdiag.values.findings import Finding
from memdiag.values.measurements import Role
from memdiag.values.verdict import CALM, Reason, Verdict

_OF_ALL_PAGES = frozenset({Role.UNIQUE, Role.PROPORTIONAL})


def ask(finding: Finding, meters: Meters, parameters: Shared) -> Says | None:
    """Settle a doubt about such a series: a warm-up where it rose, for it cannot go on."""
    if finding.reason is Reason.TOO_FEW_SAMPLES:
        return None
    least = meters.policy.common.few_samples
    level = _level(finding, meters)
    as_often = {f.role for f in level if f.samples >= finding.samples}
    known = {f.role for f in level if f.samples >= least and f.metric not in IN_PART}
    malloc = any(f.metric == MALLOC and f.samples >= least for f in level)
    if finding.role in _OF_ALL_PAGES and Role.RESIDENT in as_often:
        holder = "the resident memory that it is part of"
    elif meters.is_on_host(finding) and malloc:
        holder = "the memory in use that it is part of"
    elif finding.role in PAGES and {Role.IN_USE, Role.OBJECTS} <= known:
        holder = "the part of it handed out by malloc and Python's own allocator"
    else:
        return None
    still = meters.policy.common.calm_growth * finding.latest_value
    rose = rise(finding, finding, meters.policy) > still
    return Says(
        text=f"{holder} does not grow",
        reason=Reason.OVERRULED,
        verdict=Verdict.WARMUP if rose else Verdict.STABLE,
    )


def change(finding: Finding, meters: Meters, parameters: Shared) -> Finding:
    """The finding, no surer than the calm that it borrows."""
    says = ask(finding, meters, parameters)
    assert says is not None
    sure = max(f.confidence for f in _level(finding, meters))
    return replace(
        finding,
        verdict=says.verdict,
        reason=says.reason,
        confidence=min(sure, meters.policy.reporting.borrowed_confidence),
        need_more=None,
    )


def _level(finding: Finding, meters: Meters) -> list[Finding]:
    return [f for f in meters.same(finding) if f.verdict in CALM]


CHECK = Cross(name="bounded_by", ask=ask, parameters=SHARED, change=change)
