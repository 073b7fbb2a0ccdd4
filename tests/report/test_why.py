"""`analyze --why`: what was argued for and against each verdict, as a reader sees it."""

from __future__ import annotations

import io
import math
import string
import unicodedata
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from report import diagnoses
from rich.cells import cell_len
from rich.console import Console

from memdiag.analysis.diagnose import diagnose
from memdiag.recording.read import read
from memdiag.report.formats.terminal import render
from memdiag.report.text import argument_text
from memdiag.report.text.screen import Detail
from memdiag.values.findings import Diagnosis, Finding, RecordingFinding
from memdiag.values.measurements import Axis, AxisKind, Unit
from memdiag.values.verdict import Argument, Reason, Side, Verdict

FIXTURES = Path(__file__).parents[2] / "fixtures"
RUNS = ("runs/burn_baseline.csv", "runs/burn_hybrid.csv", "runs/vision_run1.csv")
RECORDINGS = (
    *RUNS,
    "runs/vision_run2.csv",
    "runs/healthy_figures.csv",  # another series changes the verdict
    "runs/healthy_loader_worker.csv",
    "corpus/own_leak_losses.csv",  # a staircase among its series
    "corpus/own_sawtooth_gc.csv",
    "corpus/own_ckpt_spikes_steps.csv",  # as many objections as there are
    "corpus/ppwwyyxx_spawn_torch_worker.csv",
    "corpus/oracledb1510_maint.csv",
    "corpus/siphon4813_2h.csv",
)


@cache
def found(name: str) -> RecordingFinding:
    return diagnose(read(str(FIXTURES / name)))


def shown(diagnosis: Diagnosis, *, width: int = 80, ascii_only: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, legacy_windows=False)
    console.print(render(diagnosis, width=width, ascii_only=ascii_only, why=True), soft_wrap=True)
    return out.getvalue()


def why(name: str) -> str:
    """The text of one recording without its line breaks."""
    return " ".join(shown(Diagnosis(recordings=(found(name),))).split())


def argued(finding: Finding, *trail: Argument) -> Diagnosis:
    return diagnoses.of(diagnoses.recording("a.csv", replace(finding, trail=trail)))


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("name", RECORDINGS)
def test_every_line_fits(name: str, width: int, ascii_only: bool) -> None:
    text = shown(Diagnosis(recordings=(found(name),)), width=width, ascii_only=ascii_only)
    *lines, last, _ = text.split("\n")
    for line in lines:
        assert cell_len(line) <= width, line
        assert line == line.rstrip(" "), line
    assert last.startswith("memdiag: ")  # (the path in it is never cut)
    assert text.isascii() or not ascii_only


@pytest.mark.parametrize("name", RECORDINGS)
def test_one_line_decides_and_nothing_is_left_open_in_the_words(name: str) -> None:
    text = why(name)
    assert text.count("This decides.") == 1
    assert not set("{}?") & set(text)
    assert not any(one.check in text for one in found(name).series[0].trail if "_" in one.check)


def test_a_leak_names_its_window_its_pace_and_what_was_not_considered() -> None:
    text = why("runs/burn_hybrid.csv")
    assert (
        "For LEAK last regime, 293 MB per step: It barely grew for 15 steps, then grew for 34 "
        "steps; few warm-ups do that. This decides." in text
    )
    assert "Against LEAK: none" in text
    assert "For STABLE" not in text
    assert "Found no growth staircase: No upward steps with level stretches" in text


def test_a_doubt_shows_both_sides() -> None:
    text = why("runs/vision_run1.csv")
    assert "For LEAK whole climb, 169 MB per step: It grew for 60 steps; 50% of warm-ups" in text
    assert "Against LEAK warmup prior (on whole climb): Some warm-ups last as long" in text
    assert "For STABLE or WARMUP: none Against STABLE or WARMUP: none" in text


def test_calm_is_argued_where_nothing_grows() -> None:
    text = why("runs/vision_run2.csv")
    assert "For LEAK: none" in text
    said = "flat: It shows no growth beyond chance in its last 150 steps (p = 1.00)."
    assert f"For STABLE or WARMUP {said}" in text
    assert "Against LEAK" not in text


def test_a_verdict_that_another_series_changed_says_so() -> None:
    text = why("runs/healthy_figures.csv")
    assert "malloc of main and python_blocks of main, INCONCLUSIVE: The growth" in text


def test_objections_to_other_windows_do_not_look_like_ones_to_the_leak() -> None:
    assert "Against LEAK: only about growth that does not decide" in why(
        "corpus/own_leak_losses.csv"
    )


def test_windows_that_say_the_same_share_a_line() -> None:
    text = why("runs/healthy_loader_worker.csv")
    assert "first touch (on last regime and block trend): The run" in text


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_story_of_the_report_gives_the_decisive_argument(name: str) -> None:
    finding = found(name).deciding
    assert finding is not None
    by = argument_text.decisive(finding)
    if by is None or finding.verdict is Verdict.WARMUP:
        return
    out = io.StringIO()
    console = Console(file=out, width=80, highlight=False)
    console.print(render(Diagnosis(recordings=(found(name),)), width=80, detail=Detail.SERIES))
    assert argument_text.sentence(by, finding) in " ".join(out.getvalue().split())


def test_every_template_names_its_numbers() -> None:
    for name in RECORDINGS:
        for finding in found(name).series:
            for argument in finding.trail:
                named = {key for _, key, _, _ in string.Formatter().parse(argument.text) if key}
                assert named <= set(argument.numbers), argument


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
@pytest.mark.parametrize("key", ["rise_y", "length_x", "growth_rate", "a_share", "a_p", "falls"])
@pytest.mark.parametrize("unit", Unit)
def test_an_unknown_number_is_a_question_mark(key: str, value: float | None, unit: Unit) -> None:
    argument = replace(
        diagnoses.LEAK_TRAIL[1],
        text=f"it rose {{{key}}}",
        numbers={} if value is None else {key: value},
    )
    finding = replace(diagnoses.leak(), unit=unit)
    assert argument_text.sentence(argument, finding) == "It rose ?."
    assert "This decides." in shown(argued(finding, argument))


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("rise_y", 2.5e9, "2.50 GB"),
        ("level_y", -2.5e9, "2.50 GB"),
        ("length_x", 2900.0, "2,900 steps"),
        ("growth_rate", 12e3, "12.0 KB per step"),
        ("longer_share", 0.0, "0%"),
        ("longer_share", 0.0004, "less than 0.1%"),
        ("longer_share", 0.004, "0.4%"),
        ("longer_share", 0.9, "90%"),
        ("longer_share", 0.9999, "more than 99.9%"),
        ("growth_p", 0.0004, "p < .001"),
        ("readings", 1234.0, "1,234"),
    ],
)
def test_numbers_have_the_unit_that_their_name_ends_in(key: str, value: float, told: str) -> None:
    argument = replace(diagnoses.LEAK_TRAIL[1], text=f"x {{{key}}}", numbers={key: value})
    assert argument_text.sentence(argument, diagnoses.leak()) == f"X {told}."


def test_rates_of_one_sentence_are_per_the_same_unit() -> None:
    argument = replace(
        diagnoses.LEAK_TRAIL[1],
        text="{early_rate}, then {late_rate}",
        numbers={"early_rate": 5e6, "late_rate": 5e3},
    )
    finding = replace(diagnoses.leak(), axis=Axis(name="t", kind=AxisKind.SECONDS))
    told = argument_text.sentence(argument, finding)
    assert told == "5.00 MB per second, then 5.00 KB per second."


def test_names_from_outside_are_harmless() -> None:
    hostile = replace(diagnoses.leak(), metric=diagnoses.HOSTILE, process=diagnoses.HOSTILE)
    other = replace(hostile, verdict=Verdict.INCONCLUSIVE, reason=Reason.SLOWING)
    text = shown(diagnoses.of(diagnoses.recording(diagnoses.HOSTILE, hostile, other)), width=100)
    assert {unicodedata.category(c) for c in text.replace("\n", "")}.isdisjoint({"Cc", "Cf", "Cs"})
    plain = shown(diagnoses.of(diagnoses.recording("a", hostile, other)), ascii_only=True)
    assert plain.isascii()


def test_of_many_series_that_say_the_same_a_few_are_named() -> None:
    leaks = [replace(diagnoses.leak(), metric=f"m{n}", column=f"m{n}") for n in range(7)]
    text = " ".join(shown(diagnoses.of(diagnoses.recording("a.csv", *leaks))).split())
    assert "m1, m2, m3 and 3 more, LEAK: It grew by equal amounts" in text
    assert "that leak or may leak" not in text


def test_what_other_series_argue_has_a_group() -> None:
    across = Argument(
        check="exact_meter",
        side=Side.ACROSS,
        text="malloc is calm",
        reason=Reason.OVERRULED,
        verdict=Verdict.INCONCLUSIVE,
        is_decisive=True,
    )
    finding = replace(diagnoses.leak(), verdict=Verdict.INCONCLUSIVE, reason=Reason.OVERRULED)
    text = " ".join(shown(argued(finding, *diagnoses.LEAK_TRAIL, across)).split())
    assert "Other series exact meter: Malloc is calm. This decides." in text


def test_a_finding_without_arguments_is_shown() -> None:
    text = shown(diagnoses.stable())
    assert "For LEAK: none" in text
    assert "This decides." not in text


def test_nothing_measured_has_no_arguments() -> None:
    assert "arguments about" not in shown(diagnoses.SCREENS["nothing_measured"]())


def test_many_recordings_have_their_table_first() -> None:
    recordings = tuple(found(name) for name in RECORDINGS[:5])
    lines = shown(Diagnosis(recordings=recordings)).split("\n")
    assert lines[1].split()[0] == "verdict"
    assert sum(line.startswith(" Why ") for line in lines) == 5
    assert lines[-2].startswith("memdiag: ")
