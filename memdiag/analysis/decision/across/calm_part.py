"""A coarse meter grows, and the exact one that it contains does not.

Its growth is holes, cache or shared pages, which are bounded by the largest working set.
"""

from __future__ import annotations

from memdiag.analysis.decision.across import allocator_metrics
from memdiag.analysis.decision.across.meters import Cross, Meters, name
from memdiag.analysis.decision.case import Says
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.findings import Finding
from memdiag.values.measurements import Role
from memdiag.values.verdict import CALM, Reason

CONTAINS = {
    Role.RESIDENT: (Role.UNIQUE,),
    Role.PROPORTIONAL: (Role.UNIQUE,),
    Role.DEVICE_RESERVED: (Role.DEVICE_ALLOCATED,),
}


def ask(finding: Finding, meters: Meters, parameters: Shared) -> Says | None:
    """Overrule a leak of the coarse meter."""
    for other in meters.same(finding):
        if other.verdict not in CALM or other.samples < finding.samples // 2:
            continue
        if _contains(finding, other, meters):
            return Says(
                text="a metric that counts memory in it more exactly does not grow",
                against=name(other),
                reason=Reason.OVERRULED,
            )
    return None


def _contains(finding: Finding, other: Finding, meters: Meters) -> bool:
    """Whether the calm of `other` overrules the growth of `finding`.

    The driver's figure contains the framework's cache and what is outside the framework. Only
    where the cache grows is it the cache's growth; else it is memory that no framework knows of.
    Blocks that wait for another stream are neither in use nor free for the cache.
    """
    findings = meters.findings
    if finding.role is Role.DEVICE:
        caches = [f for f in findings if f.role is Role.DEVICE_RESERVED and f.verdict not in CALM]
        growing = [f for f in caches if meters.is_same(finding, f)]
        if not growing or not all(allocator_metrics.is_pair(f, other) for f in growing):
            return False
        inside = other.role is Role.DEVICE_ALLOCATED
    else:
        inside = other.role in CONTAINS.get(finding.role, ())
    waiting = any(
        allocator_metrics.is_active(f)
        and f.verdict not in CALM
        and allocator_metrics.is_pair(f, other)
        for f in findings
    )
    return inside and not (other.role is Role.DEVICE_ALLOCATED and waiting)


CHECK = Cross(name="calm_part", ask=ask, parameters=SHARED)
