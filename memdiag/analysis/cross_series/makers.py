"""The processes that make the growth of a leak of host memory."""

from __future__ import annotations

from memdiag.analysis.decision.across.decide import most_informative
from memdiag.analysis.decision.across.series_set import COUNTS, SeriesSet, speed
from memdiag.analysis.policy import NOT_EVIDENCE_ROLES
from memdiag.values.findings import Finding
from memdiag.values.measurements import ON_DEVICE, Unit
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict


def is_leak(finding: Finding) -> bool:
    """Return True for a leak of host memory."""
    other = {*ON_DEVICE, *COUNTS, *NOT_EVIDENCE_ROLES}
    is_memory = finding.role not in other and finding.unit is Unit.BYTES
    return is_memory and finding.verdict is Verdict.LEAK


def makers(series: SeriesSet, subject: Finding) -> list[Finding]:
    """The leak of each process that has one, by its most informative series.

    subject: the series that decides. If it is the total, and no process is known to leak, those
    that grow by a part of it that matters. Processes without a total are jobs of their own: of
    those, and where nothing is known of the parts, the deciding series is the only one.
    """
    findings = series.findings
    if all(f.process != "tree" for f in findings):
        return [subject]
    leaks: dict[str, list[int]] = {}
    growing = []
    for at, finding in enumerate(findings):
        if finding.process == "tree":
            continue
        if is_leak(finding):
            leaks.setdefault(finding.process, []).append(at)
        elif finding.metric == subject.metric and finding.verdict not in STABLE_OR_WARMUP:
            growing.append(finding)
    least = series.policy.common.little * speed(subject)
    own = [findings[most_informative(of, series)] for of in leaks.values()]
    return own or [f for f in growing if speed(f) >= least > 0] or [subject]
