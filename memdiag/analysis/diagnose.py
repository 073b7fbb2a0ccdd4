"""The whole decision on one recording, composed in one visible place."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.analysis.build_finding import describe
from memdiag.analysis.crossmeter.evidence import evidence
from memdiag.analysis.crossmeter.leak_origin import leaking
from memdiag.analysis.decision import decide
from memdiag.analysis.decision.across import decide as across
from memdiag.analysis.decision.case import Context
from memdiag.analysis.forecasting.backtest import foretold
from memdiag.analysis.forecasting.capacity import capacity
from memdiag.analysis.forecasting.first_limit import first_limit
from memdiag.analysis.policy import DEFAULT, Policy
from memdiag.analysis.preprocessing.prepare import prepare
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import Recording, Series
from memdiag.values.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """The findings of a recording's series (None where it has no readings), and its verdict.

    decided_by: index of the finding that speaks for the recording, of those that are not None.
    """

    found: tuple[Finding | None, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict
    confidence: float
    decided_by: int | None


def judge(recording: Recording, policy: Policy = DEFAULT) -> Judgment:
    """The decision on a recording, without what follows from it."""
    found = tuple(_find(s, recording, policy) for s in recording.series)
    ended = ended_processes(recording, policy)
    findings = across.correct([f for f in found if f is not None], policy)
    verdict, confidence, decided_by = across.decide(findings, ended, policy)
    return Judgment(
        found=found,
        findings=across.settled(findings, ended, policy),
        verdict=verdict,
        confidence=confidence,
        decided_by=decided_by,
    )


def diagnose(recording: Recording, policy: Policy = DEFAULT) -> RecordingFinding:
    """What was found in one recording: a finding per series, and the verdict of all together.

    Pure: the same recording and policy give the same finding.
    """
    judged = judge(recording, policy)
    findings, verdict, decided_by = judged.findings, judged.verdict, judged.decided_by
    found = list(zip(recording.series, judged.found, strict=True))
    return RecordingFinding(
        source=recording.source,
        verdict=verdict,
        confidence=judged.confidence,
        series=findings,
        decided_by=decided_by,
        evidence=evidence(findings, decided_by, policy),
        notes=recording.notes
        + tuple(f"{s.column} holds no readings" for s, f in found if f is None),
        missing=recording.missing,
        ending=recording.ending,
        marks=recording.marks,
        capacity=capacity(findings, recording.limits),
        first_limit=first_limit(findings, verdict),
        leaking=leaking(findings, decided_by),
        early_forecast=foretold(
            recording,
            list(enumerate(s for s, f in found if f is not None)),
            lambda series, given: _find(series, given, policy),
        ),
    )


def ended_processes(recording: Recording, policy: Policy) -> frozenset[str]:
    """Processes of a tree that were gone well before the recording's end."""
    times = [(s.process, s.at_s) for s in recording.series if s.at_s is not None and len(s.at_s)]
    if not times:
        return frozenset()
    began_s = min(float(at_s[0]) for _, at_s in times)
    end_s = max(float(at_s[-1]) for _, at_s in times)
    late_s = end_s - policy.common.little * (end_s - began_s)
    alive = {process for process, at_s in times if float(at_s[-1]) >= late_s}
    return frozenset(process for process, _ in times) - alive


def _find(series: Series, recording: Recording, policy: Policy) -> Finding | None:
    prepared = prepare(series, policy)
    if prepared.samples == 0:
        return None
    ranks = len({one.process for one in recording.series if one.is_rank})
    records = ranks if series.process == "tree" else int(series.is_rank)
    context = Context(planned_x=recording.planned_x, records=records, limits=recording.limits)
    decided = decide.decide(prepared, policy, context)
    return describe(series, prepared, decided, policy, context)
