"""How the report says what ended a target."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report import diagnoses

from memdiag.report.formats import terminal
from memdiag.report.sections.evidence_and_notes import ending
from memdiag.report.text.screen import Screen
from memdiag.values.capacity import EarlyForecast
from memdiag.values.findings import GrownPlace, NeedMore, RecordingFinding
from memdiag.values.measurements import Cause, Ending
from memdiag.values.verdict import Reason, Verdict

OOM = "killed by the kernel's OOM killer"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            Ending(signal=9, why=OOM, at_bytes=3_980_000_000, limit_bytes=4_000_000_000),
            f"The command was killed by SIGKILL ({OOM} at 3.98 GB of 4.00 GB).",
        ),
        (
            Ending(code=137, why=OOM, at_bytes=3_980_000_000),
            f"The command failed with exit status 137 ({OOM} at 3.98 GB).",
        ),
        (
            Ending(signal=9, why=OOM, limit_bytes=4_000_000_000),
            f"The command was killed by SIGKILL ({OOM}).",
        ),
        (Ending(signal=9), "The command was killed by SIGKILL."),
    ],
)
def test_a_kill_for_memory_says_how_far_it_had_come(how: Ending, said: str) -> None:
    assert ending(how, Screen(width=80)) == said


def shown(found: RecordingFinding) -> str:
    lines = terminal.render(diagnoses.of(found), width=80).renderables
    return " ".join(" ".join(map(str, lines)).split())


def ended(found: RecordingFinding, confidence: float | None = None) -> RecordingFinding:
    how = Ending(code=137, why=OOM, cause=Cause.OOM_KILLER, limit_bytes=4_000_000_000)
    told = EarlyForecast(
        series=0,
        limit_bytes=4_000_000_000,
        seen_until_x=40.0,
        at_x=90.0,
        low_x=80.0,
        high_x=100.0,
        confidence=confidence,
    )
    return replace(found, ending=how, early_forecast=told)


def test_after_an_end_for_want_of_memory_nothing_goes_on_but_it_is_told_what_was_foretold() -> None:
    found = ended(diagnoses.recording("a.csv", diagnoses.leak()), 0.97)
    assert "at this rate" in shown(replace(found, ending=None, early_forecast=None))
    said = shown(found)
    assert "at this rate" not in said
    assert "forecast halfway, at step 40, " in said
    assert (
        "was expected to reach 4.00 GB at step 90 (80 to 100), 97% confident of a leak by then."
        in said
    )


def test_a_doubt_that_memory_has_ended_asks_for_more_memory_not_for_a_longer_run() -> None:
    (doubt,) = diagnoses.inconclusive().recordings
    assert "Run for about" in shown(doubt)
    said = shown(ended(doubt))
    assert "Give it more memory than 4.00 GB and record" in said
    assert "Run for about" not in said
    assert "if the trend continued, which was inconclusive" in said


def test_swap_that_was_never_used_is_not_among_the_last_readings() -> None:
    swap = diagnoses.series([(0, 0), (9, 0)], Verdict.STABLE, Reason.FLAT)
    found = diagnoses.recording("a.csv", diagnoses.leak(), replace(swap, metric="swap_bytes"))
    said = shown(replace(found, ending=Ending(signal=9)))
    assert "more than at the start" in said
    assert "swap" not in said


def test_more_memory_is_not_advised_where_a_verdict_would_take_many_times_as_much() -> None:
    (doubt,) = diagnoses.inconclusive().recordings
    assert doubt.decided_by is not None
    finding = doubt.series[doubt.decided_by]
    far = replace(finding, need_more=NeedMore(more_x=1e6, more_s=1e6))
    said = shown(ended(replace(doubt, series=(far, *doubt.series[1:]))))
    assert "Give it more memory" not in said
    assert "would need about 169 TB more memory at this rate" in said


def test_a_place_that_holds_most_of_what_grew_is_advised_instead_of_more_memory() -> None:
    (doubt,) = diagnoses.inconclusive().recordings
    assert doubt.deciding is not None
    place = GrownPlace(
        holder="list `rows`, global of __main__",
        process="main",
        size=500,
        unit="items",
        grown_bytes=0.9 * (doubt.deciding.latest_value - doubt.deciding.start_value),
        since_step=None,
        file="/t.py",
        line=4,
        code="rows.append(x)",
        function=None,
    )
    said = shown(ended(replace(doubt, grown=(place,))))
    assert "adds to list `rows`, global of __main__ first: it holds 90% of what" in said
    assert "Give it more memory" not in said
