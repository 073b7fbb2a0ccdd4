"""What the processes of a job say to each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report import diagnoses
from report.diagnoses import interval

from memdiag.analysis.fusion import evidence
from memdiag.findings import EvidenceKind, Finding, Reason, Verdict


def of(process: str, growth_bytes_per_step: float) -> Finding:
    trace = [(float(x), 1e9 + growth_bytes_per_step * x) for x in range(100)]
    leaks = growth_bytes_per_step > 1000
    verdict = Verdict.LEAK if leaks else Verdict.STABLE
    found = diagnoses.series(trace, verdict, Reason.OUTLASTS_WARMUP if leaks else Reason.FLAT)
    growth = interval(growth_bytes_per_step)
    return replace(found, process=process, growth_per_x=growth)


def alone(*findings: Finding) -> list[str]:
    told = evidence(findings, 0)
    return [e.subject for e in told if e.kind is EvidenceKind.ONE_PROCESS]


def test_a_rank_that_grows_alone_is_named() -> None:
    job = [of("rank1", 5e5), of("rank0", 200.0), of("rank2", -9e5), of("tree", 5e5)]
    assert alone(*job) == ["rank1 rss_bytes"]


@pytest.mark.parametrize(
    "job",
    [
        [of("rank1", 5e5), of("rank0", 4e5), of("tree", 9e5)],  # both
        [of("main", 5e5), of("tree", 5e5)],  # there is no other
        [of("tree", 5e5), of("main", 5e5), of("worker", 1.0)],  # it is not told of a process
        [of("rank1", 10.0), of("rank0", 0.0)],  # nothing leaks
    ],
)
def test_none_is_named_where_none_is_alone(job: list[Finding]) -> None:
    assert alone(*job) == []
