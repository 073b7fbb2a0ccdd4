"""The section on the cause: line, place, rate and fix; hostile names cannot act on a terminal."""

from __future__ import annotations

from dataclasses import replace

from report import diagnoses
from report.diagnoses import HOSTILE

from memdiag.report.formats import markdown, terminal
from memdiag.report.sections import advice, cause
from memdiag.report.text.screen import Screen
from memdiag.values.findings import (
    Culprit,
    Evidence,
    EvidenceKind,
    Fix,
    GrowthCause,
    How,
    Leaking,
)
from memdiag.values.holders import UnreadFunction
from memdiag.values.measurements import Unit
from memdiag.values.memory_kind import MemoryKind
from memdiag.values.verdict import Reason, Verdict

SCREEN = Screen(width=100)
CULPRIT = Culprit(
    file="/home/me/train.py",
    line=41,
    code="losses.append(loss)",
    function="main",
    holder="list `losses`, local variable of main()",
    process="main",
    bytes_per_step=5829.0,
    bytes_per_s=1e6,
    count_per_step=1.0,
    share=0.97,
    since_step=1200,
    how=How.SOURCE,
)
LEAK = diagnoses.recording(
    "a.csv", diagnoses.series([(0, 0), (9, 9)], Verdict.LEAK, Reason.OUTLASTS_WARMUP)
)
FOUND = GrowthCause(
    kind=MemoryKind.GRAPH, share_explained=0.97, culprits=(CULPRIT,), fix=Fix.DETACH
)


def text(found: GrowthCause, width: int = 100) -> str:
    lines = cause.lines(replace(LEAK, cause=found), Screen(width=width))
    return "\n".join(line.plain for line in lines)


def test_line_place_rate_and_fix() -> None:
    assert " ".join(text(FOUND).split()) == (
        "Cause: train.py:41, in main(): losses.append(loss) - 5.83 KB (1 object) per step, since "
        "step 1,200 (97% of the growth): list `losses`, local variable of main(). "
        "Usual fix: keep a number (loss.item()); a tensor whose values are needed, without its "
        "graph (.detach())."
    )


def test_where_pages_grow_by_fragmentation_the_share_is_of_what_is_in_use() -> None:
    found = replace(LEAK, cause=FOUND, leaking=Leaking(kind=MemoryKind.HOLES, share=0.95))
    said = " ".join(line.plain for line in cause.lines(found, SCREEN))
    assert "(97% of the growth in use)" in said


def test_what_is_not_explained_is_said() -> None:
    found = replace(FOUND, share_explained=0.6)
    assert "40% of the growth is not explained." in text(found)


def test_a_cause_that_could_not_be_found_says_what_to_try() -> None:
    found = GrowthCause(kind=None, share_explained=0.2, culprits=(), fix=None)
    said = " ".join(text(found).split())
    assert "could not tell" in said
    assert "20% of it" in said
    assert "memray" in said


def test_functions_whose_variables_were_not_read_are_named() -> None:
    unread = UnreadFunction(function="main", calls="locals")
    found = GrowthCause(kind=None, share_explained=0.2, culprits=(), fix=None, unread=(unread,))
    assert "Local variables of main() are not read because it calls locals()." in " ".join(
        text(found).split()
    )


def test_without_steps_the_rate_is_per_second() -> None:
    without = replace(CULPRIT, bytes_per_step=None, count_per_step=None, since_step=None)
    assert "- 1.00 MB/s (97% of the growth): list" in " ".join(
        text(replace(FOUND, culprits=(without,))).split()
    )


def test_hostile_names_are_escaped() -> None:
    hostile = replace(CULPRIT, file=HOSTILE, code=HOSTILE, function=HOSTILE, holder=HOSTILE)
    found = replace(FOUND, culprits=(hostile,))
    assert "\x1b" not in text(found)
    document = markdown.document(diagnoses.of(replace(LEAK, cause=found)))
    assert "\x1b" not in document
    assert "**Cause**" in document


def test_nothing_is_shown_where_nothing_was_looked_for() -> None:
    assert cause.lines(LEAK, Screen(width=80)) == []


def test_advice_about_where_to_look_ends_where_the_line_is_named() -> None:
    def said(found: GrowthCause) -> str:
        return "\n".join(line.plain for line in advice.lines(replace(LEAK, cause=found), SCREEN))

    assert "memdiag compare" in said(FOUND)
    assert "tag the phases" not in said(FOUND)
    assert "tag the phases" in said(replace(FOUND, culprits=()))


def test_every_fix_has_its_words() -> None:
    for fix in Fix:
        assert "Usual fix: " in text(replace(FOUND, fix=fix))


def test_the_figures_come_before_long_names_which_may_be_cut() -> None:
    long = replace(CULPRIT, code="x" * 70, holder="list `a`, held by " + "b" * 400)
    shown = terminal.render(
        diagnoses.of(replace(LEAK, cause=replace(FOUND, culprits=(long,)))), width=60
    )
    said = " ".join(" ".join(map(str, shown.renderables)).split())
    assert "5.83 KB (1 object) per step, since step 1,200 (97% of the growth)" in said


def test_a_line_in_several_processes() -> None:
    two = ("DataLoader worker 0", "DataLoader worker 1")
    for more, said in (
        ((), "DataLoader worker 0 and DataLoader worker 1"),
        (("DataLoader worker 2",), "DataLoader worker 0 and 2 more processes"),
    ):
        culprit = replace(CULPRIT, process=two[0], processes=two + more)
        shown = " ".join(text(replace(FOUND, culprits=(culprit,))).split())
        assert f"(97% of the growth) in {said}: list `losses`" in shown
        assert "(.detach()); workers that end free it" in shown


def test_what_nothing_else_explains_is_not_certain() -> None:
    culprit = replace(CULPRIT, is_certain=False)
    said = " ".join(text(replace(FOUND, culprits=(culprit,))).split())
    assert "(up to 97% of the growth, as nothing else explains it): list" in said


def test_a_counter_that_rises_with_a_named_place_has_bytes_per_count() -> None:
    leak = diagnoses.leak_over_time().recordings[0]
    (memory,) = leak.series
    assert memory.growth_per_x is not None
    slower = memory.growth_per_x.scaled(1 / 2e6)
    copies = replace(memory, metric="copies", process="", unit=Unit.COUNT, growth_per_x=slower)
    grows = Evidence(kind=EvidenceKind.COUNTER_GROWS, subject="rss_bytes", against="copies")
    found = replace(leak, series=(memory, copies), evidence=(grows,), cause=FOUND)
    assert "copies rises as well: memory grows by 2.00 MB per count." in cause.sentences(
        found, SCREEN
    )
