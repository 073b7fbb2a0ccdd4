"""A process that has ended, or was there for a small part of the run: a worker that each epoch
starts anew. Where the tree's pages are calm, a doubt about it is none about the job.
"""

from __future__ import annotations

from memdiag.analysis.decision.across.allocator_metrics import ON_DEVICE
from memdiag.analysis.decision.across.meters import Cross, Meters
from memdiag.analysis.decision.case import Says
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.policy import PAGES
from memdiag.values.findings import Finding
from memdiag.values.measurements import Role
from memdiag.values.verdict import CALM, Reason, Verdict


def ask(finding: Finding, meters: Meters, parameters: Shared) -> Says | None:
    """Settle a doubt about such a process."""
    if finding.role in ON_DEVICE:  # of which the tree's pages say nothing
        return None
    pages = [f for f in meters.findings if f.role in PAGES]
    seen = max((f.samples for f in pages if f.process == finding.process), default=0)
    tree = max((f.samples for f in pages if f.process == "tree"), default=0)
    is_part = finding.process not in {"", "main", "tree"}
    hardly = is_part and seen < meters.policy.common.short_share * tree
    whole = [f for f in pages if f.process == "tree" and f.role is Role.RESIDENT]
    if not (hardly or finding.process in meters.ended) or not whole:
        return None
    if not all(f.verdict in CALM for f in whole):
        return None
    return Says(
        text="its process existed for only part of the run, and all processes together do not grow",
        reason=Reason.OVERRULED,
        verdict=Verdict.STABLE,
    )


CHECK = Cross(name="passing_process", ask=ask, parameters=SHARED)
