"""It grew as memory in use did, and no more than slowly since that has settled.

A cache that is full looks like this. Pages go on rising for a while by holes, and tensors may not
have been counted since.
"""

from __future__ import annotations

from dataclasses import replace

from memdiag.analysis.decision.across.allocator_metrics import rise
from memdiag.analysis.decision.across.meters import MALLOC, Cross, Meters, name
from memdiag.analysis.decision.case import Says
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.policy import PAGES
from memdiag.values.findings import Finding
from memdiag.values.verdict import CALM, Reason


def ask(finding: Finding, meters: Meters, parameters: Shared) -> Says | None:
    """Overrule a leak of pages, or of tensors on the host."""
    if finding.role not in PAGES and not meters.is_on_host(finding):
        return None
    common = meters.policy.common
    grown, length = rise(finding, finding, meters.policy), finding.last_x - finding.first_x
    for f in meters.same(finding):
        known = f.metric == MALLOC and f.verdict in CALM and f.samples >= common.few_samples
        ends = finding.last_x - f.last_x <= common.slight * length
        same = f.axis == finding.axis
        if known and ends and same and rise(f, finding, meters.policy) >= common.most * grown > 0:
            return _slow_since(finding, f, common.little * grown / length, meters)
    return None


def _slow_since(finding: Finding, settled: Finding, pace: float, meters: Meters) -> Says | None:
    if settled.plateau is None:
        return None
    since = replace(settled, onset_x=settled.plateau.since_x)
    later = rise(finding, since, meters.policy)
    way = finding.last_x - settled.plateau.since_x.value
    if later > max(pace * way, meters.policy.common.touched_bytes):
        return None
    return Says(
        text="it rose by no more than {later_y} since memory in use stopped growing",
        against=name(settled),
        numbers={"later_y": later},
        reason=Reason.OVERRULED,
    )


CHECK = Cross(name="settled_malloc", ask=ask, parameters=SHARED)
