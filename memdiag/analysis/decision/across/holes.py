"""Pages grow with what malloc holds free, while all that is in use is steady.

Holes between blocks, which the largest working set bounds; or within them, as some was never
touched before.
"""

from __future__ import annotations

from memdiag.analysis.decision.across.allocator_metrics import rise
from memdiag.analysis.decision.across.meters import MALLOC, PYTHON_BLOCKS, Cross, Meters, name
from memdiag.analysis.decision.case import Says
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.policy import PAGES
from memdiag.values.findings import Finding
from memdiag.values.measurements import Role
from memdiag.values.verdict import CALM, Reason


def ask(finding: Finding, meters: Meters, parameters: Shared) -> Says | None:
    """Overrule a leak of pages."""
    if finding.role not in PAGES:
        return None
    common = meters.policy.common
    same = [f for f in meters.same(finding) if f.axis == finding.axis]
    calm = {f.metric for f in same if f.verdict in CALM and f.samples >= common.few_samples}
    grown = rise(finding, finding, meters.policy)
    small = grown <= common.little * finding.peak_value
    for free in same:
        if free.role is not Role.HOLES or not free.metric.startswith("malloc_"):
            continue
        risen = rise(free, finding, meters.policy)
        explains = risen >= common.most * grown > 0 or (small and free.peak_value >= grown)
        if explains and {MALLOC, PYTHON_BLOCKS} <= calm:
            return Says(
                text="it rose by {grown_y} and malloc's free memory by {free_y}, while memory "
                "in use stays level: the growth is holes between blocks",
                against=name(free),
                numbers={"grown_y": grown, "free_y": risen},
                reason=Reason.OVERRULED,
            )
    return None


CHECK = Cross(name="holes", ask=ask, parameters=SHARED)
