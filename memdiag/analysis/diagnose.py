"""The whole decision on one recording, composed in one visible place."""

from __future__ import annotations

from dataclasses import replace

from memdiag.analysis.build_finding import build_finding
from memdiag.analysis.cause.find import cause, leaking_by_names, watching
from memdiag.analysis.cause.in_memory import census, grown
from memdiag.analysis.cause.interventions import with_interventions
from memdiag.analysis.cause.onset import with_onset
from memdiag.analysis.cross_series.evidence import evidence
from memdiag.analysis.cross_series.leak_kind import leaking
from memdiag.analysis.cross_series.whole_growth import whole_growth
from memdiag.analysis.decision import decide
from memdiag.analysis.decision.across import decide as across
from memdiag.analysis.decision.across.kept_by_names import kept
from memdiag.analysis.decision.case import Context
from memdiag.analysis.forecasting.backtest import backtest
from memdiag.analysis.forecasting.capacity import capacity
from memdiag.analysis.forecasting.first_limit import first_limit
from memdiag.analysis.policy import DEFAULT, Policy
from memdiag.analysis.preprocessing.prepare import prepare
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import Recording, Series
from memdiag.values.verdict import Verdict


def judge(recording: Recording, policy: Policy = DEFAULT) -> RecordingFinding:
    """The decision on a recording, without what follows from it, and without segments."""
    return _judged(recording, policy, with_segments=False)[0]


def _judged(
    recording: Recording, policy: Policy, *, with_segments: bool
) -> tuple[RecordingFinding, list[Series]]:
    """The decision on a recording, and those of its series that have readings."""
    found = [
        (series, _find(series, recording, policy, with_segments=with_segments))
        for series in recording.series
    ]
    recorded = recording.series
    findings = across.correct(
        [f for _, f in found if f is not None],
        recorded,
        policy,
        kept(recording.holders),
        recording.fill_levels,
    )
    verdict, confidence, decided_by = across.decide(findings, recorded, policy)
    empty = tuple(f"{s.column} holds no readings" for s, f in found if f is None)
    judged = RecordingFinding(
        source=recording.source,
        verdict=verdict,
        confidence=confidence,
        series=across.settled(findings, recorded, policy),
        decided_by=decided_by,
        notes=recording.notes + empty,
        missing=recording.missing,
        ending=recording.ending,
        marks=recording.marks,
    )
    return judged, [series for series, f in found if f is not None]


def diagnose(recording: Recording, policy: Policy = DEFAULT) -> RecordingFinding:
    """The diagnosis of one recording: a finding per series, and the verdict of all together.

    Pure: the same recording and policy give the same finding.
    """
    judged, series = _judged(recording, policy, with_segments=True)
    findings, decided_by = judged.series, judged.decided_by
    kind = leaking(findings, decided_by)
    growth = whole_growth(findings, decided_by, policy)
    held = cause(findings, decided_by, kind, recording.holders, series, growth)
    return replace(
        judged,
        series=with_onset(findings, decided_by, held, policy),
        notes=judged.notes + watching(judged.verdict, recording.holders),
        cause=with_interventions(held, recording.interventions),
        grown=grown(recording),
        census=census(recording, judged.deciding),
        evidence=evidence(findings, decided_by, policy),
        capacity=capacity(findings, recording.limits),
        first_limit=first_limit(findings, judged.verdict),
        leaking=leaking_by_names(kind, held),
        growth=growth,
        early_forecast=backtest(
            recording,
            list(enumerate(series)),
            lambda one, given: _find(one, given, policy, with_segments=False),
        ),
    )


def _find(
    series: Series, recording: Recording, policy: Policy, *, with_segments: bool
) -> Finding | None:
    prepared = prepare(series, policy)
    if prepared.samples == 0:
        return None
    ranks = len({one.process for one in recording.series if one.is_rank})
    records = ranks if series.process == "tree" else int(series.is_rank)
    context = Context(
        planned_x=recording.planned_x,
        records=records,
        limits=recording.limits,
        unread_share=series.unread_share,
    )
    if series.may_be_free:
        context = replace(context, leaks_if_free=_leaks_if_free(series, context, policy))
    decided = decide.decide(prepared, policy, context)
    return build_finding(series, prepared, decided, policy, context, with_segments=with_segments)


def _leaks_if_free(series: Series, context: Context, policy: Policy) -> bool:
    """Return True if these readings would be a leak if they were of free memory."""
    prepared = prepare(replace(series, falling=True), policy)
    return decide.decide(prepared, policy, context).verdict is Verdict.LEAK
