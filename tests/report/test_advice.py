"""Advice follows from what leaks and from who makes it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from memory_series import judge, series_of
from report import diagnoses
from report.diagnoses import interval
from report.test_cause import FOUND

from memdiag.report.sections import advice, evidence_and_notes, facts, headline
from memdiag.report.text.screen import Screen
from memdiag.values.capacity import Capacity, Memory
from memdiag.values.findings import GrowthPart, Leaking, RecordingFinding, WholeGrowth
from memdiag.values.measurements import AxisKind, Missing, Unavailable
from memdiag.values.memory_kind import MemoryKind
from memdiag.values.verdict import Reason, Verdict

SCREEN = Screen(width=2000)
SECONDS = AxisKind.SECONDS


def leak(kind: MemoryKind, *parts: tuple[str, str, float]) -> RecordingFinding:
    """A leak of this kind, made by these processes: their metric and growth."""
    trace = [(float(x), 1e8 + 1e5 * x) for x in range(0, 500, 5)]
    finding = diagnoses.series(trace, Verdict.LEAK, Reason.OUTLASTS_WARMUP)
    finding = replace(finding, process="tree" if len(parts) > 1 else parts[0][0])
    whole = sum(growth for *_, growth in parts)
    growth = WholeGrowth(
        growth_per_x=interval(whole),
        growth_per_s=None,
        parts=tuple(
            GrowthPart(process=p, metric=m, growth_per_x=interval(g), share=g / whole)
            for p, m, g in parts
        ),
    )
    found = diagnoses.recording("a.csv", finding)
    return replace(found, leaking=Leaking(kind=kind, share=0.9), growth=growth)


def advised(found: RecordingFinding) -> str:
    return "\n".join(line.plain for line in advice.lines(found, SCREEN))


@pytest.mark.parametrize("kind", MemoryKind)
def test_each_kind_has_advice_of_its_own(kind: MemoryKind) -> None:
    unread = Missing(metric="tensors", process="main", why=Unavailable(reason="switched off"))
    said = {
        other: advised(replace(leak(other, ("main", "rss_bytes", 1e5)), missing=(unread,)))
        for other in MemoryKind
    }
    assert all(said[kind] != text for other, text in said.items() if other is not kind)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["DataLoader worker 0", "DataLoader worker 1"], "collate_fn"),
        (["ForkPoolWorker-1", "ForkPoolWorker-2"], "maxtasksperchild"),
        (["SpawnProcess-3"], "max_tasks_per_child"),
        (["main", "DataLoader worker 0"], None),
        (["main"], None),
    ],
)
def test_workers_have_advice_of_their_own(names: list[str], expected: str | None) -> None:
    said = advised(leak(MemoryKind.NATIVE, *((name, "malloc_bytes", 1e4) for name in names)))
    assert ("The growth is in the workers" in said) is (expected is not None)
    assert expected is None or expected in said
    assert "memray" in said
    assert ("tag the phases" in said) is (expected is None)


def test_tensors_are_no_advice_without_a_framework_that_has_them() -> None:
    found = leak(MemoryKind.NATIVE_OR_TENSORS, ("main", "malloc_bytes", 1e4))
    assert "tensors" not in advised(found)


def test_program_without_a_probe_is_not_told_to_call_memdiag_or_to_name_its_steps() -> None:
    why = Unavailable(reason="perl is not a Python program", remedy="`--step-regex` takes steps")
    unread = Missing(metric="probe_readings", process="main", why=why)
    found = replace(leak(MemoryKind.NATIVE, ("main", "rss_bytes", 1e4)), missing=(unread,))
    assert "memdiag.phase" not in advised(found)
    assert "--phase-regex" in advised(found)
    said = evidence_and_notes.missing_metric(found, unread, SCREEN)
    assert said == "tensors and memory in use of main: perl is not a Python program."
    unknown = replace(found, series=())
    assert "steps" in evidence_and_notes.missing_metric(unknown, unread, SCREEN)


def test_workers_keep_their_advice_beside_a_cause() -> None:
    found = leak(MemoryKind.TENSORS, ("DataLoader worker 0", "rss_bytes", 1e5))
    named = replace(found, cause=FOUND)
    assert "The growth is in the workers" in advised(named)
    assert "Fix it, record again" in advised(named)


def test_peak_above_a_limit_of_the_user_is_told_first_and_last() -> None:
    trace = [(float(x), 1.7e9) for x in range(0, 500, 5)]
    finding = replace(diagnoses.series(trace, Verdict.STABLE, Reason.FLAT), process="tree")
    found = diagnoses.recording("a.csv", finding)
    above = Capacity(
        memory=Memory.HOST,
        series=0,
        is_bounded=True,
        peak_bytes=1.75e9,
        needs_bytes=2 * 10**9,
        comfortable_bytes=3 * 10**9,
        limit="--limit",
        limit_bytes=12 * 10**8,
    )
    of = [fact.lines[0].plain for fact in facts.of(replace(found, capacity=(above,)), SCREEN)]
    assert "peaks at 1.75 GB, 550 MB above --limit (1.20 GB)" in of[0]
    last = headline.last_line(replace(found, capacity=(above,)), SCREEN).plain
    assert "above --limit" in last
    within = replace(above, limit_bytes=2 * 10**9)
    assert "above" not in headline.last_line(replace(found, capacity=(within,)), SCREEN).plain


def test_all_that_grow_are_named_with_their_growth() -> None:
    found = leak(
        MemoryKind.NATIVE,
        ("main", "malloc_bytes", 6e3),
        ("main", "python_blocks", 3e3),
        ("DataLoader worker 0", "rss_bytes", 1e3),
    )
    assert (
        "What grows: main by 6.00 KB per step (60%), small Python objects of main by 3.00 KB per "
        "step (30%) and DataLoader worker 0 by 1.00 KB per step (10%)."
    ) in evidence_and_notes.statements(found, SCREEN)


def test_what_decides_is_not_named_again() -> None:
    found = leak(MemoryKind.NATIVE, ("", "rss_bytes", 1e5))
    assert not [s for s in evidence_and_notes.statements(found, SCREEN) if "What grows" in s]


def test_more_samples_are_asked_for_only_where_there_are_too_few() -> None:
    short = judge(series_of(1e8 + 4096.0 * np.arange(40), 0.1 * np.arange(40), kind=SECONDS))
    few = judge(series_of([1e8, 1.1e8], [0.0, 60.0], kind=SECONDS))
    assert {short.verdict, few.verdict} == {Verdict.INCONCLUSIVE}
    assert "Sample more often" not in advised(short)
    assert "Sample more often" in advised(few)
