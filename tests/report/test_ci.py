"""JUnit, Markdown, annotations and budget lines: complete, well-formed, harmless."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from report import diagnoses
from report.diagnoses import MB, interval
from rich.cells import cell_len

from memdiag.report.formats import github_annotations, junit, markdown
from memdiag.report.sections import budgets
from memdiag.report.text.screen import Screen
from memdiag.values.budgets import Budget, BudgetKind, Stretch
from memdiag.values.findings import BudgetFinding, Diagnosis, RecordingFinding, Standing
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.verdict import Verdict

ALL = frozenset({Verdict.LEAK, Verdict.INCONCLUSIVE, Standing.BROKEN, Standing.UNCLEAR})
GROWTH = Budget(
    kind=BudgetKind.GROWTH,
    amount=1000 * MB,
    in_bytes=True,
    metric="",
    text="--max-growth 1GB/50steps",
    per=Stretch(length=50, axis=AxisKind.STEP),
)


def held(standing: Standing, budget: Budget = GROWTH, value: float = 1400 * MB) -> BudgetFinding:
    return BudgetFinding(
        budget=budget,
        standing=standing,
        metric="rss_bytes",
        process="main",
        unit=Unit.BYTES,
        measured=None if standing is Standing.UNCLEAR else interval(value, 100 * MB),
        why="too short" if standing is Standing.UNCLEAR else "",
    )


def leak(*each: BudgetFinding) -> RecordingFinding:
    return replace(diagnoses.recording("run.csv", diagnoses.leak()), budgets=each)


def suites(diagnosis: Diagnosis, failing: frozenset[Verdict | Standing] = ALL) -> ET.Element:
    return ET.fromstring(junit.document(diagnosis, failing=failing))


# ---- words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "value", "text"),
    [
        (GROWTH, 1400, "RSS of main grew by 1.40 ± 0.10 GB per 50 steps, 400 MB too much."),
        (
            replace(GROWTH, per=Stretch(length=60, axis=AxisKind.SECONDS)),
            1400,
            "RSS of main grew by 1.40 ± 0.10 GB per min, 400 MB too much.",
        ),
        (
            replace(GROWTH, kind=BudgetKind.PEAK, per=None),
            1400,
            "RSS of main peaked at 1.40 GB, 400 MB too much.",
        ),
        (
            replace(
                GROWTH,
                kind=BudgetKind.VARIATION,
                per=None,
                since=Stretch(length=90, axis=AxisKind.STEP),
            ),
            1400,
            "RSS of main varied by 1.40 GB from step 90 on, 400 MB too much.",
        ),
    ],
)
def test_broken_budget_says_figure_and_excess(budget: Budget, value: float, text: str) -> None:
    found = held(Standing.BROKEN, budget, value * MB)
    assert budgets.sentence(found, Screen(width=100)) == text


@pytest.mark.parametrize("kind", BudgetKind)
@pytest.mark.parametrize("standing", Standing)
@pytest.mark.parametrize("axis", AxisKind)
def test_every_budget_has_words(kind: BudgetKind, standing: Standing, axis: AxisKind) -> None:
    stretch = Stretch(length=5, axis=axis)
    budget = replace(GROWTH, kind=kind, per=stretch, since=stretch)
    text = budgets.sentence(held(standing, budget), Screen(width=100))
    assert text.endswith(".")
    assert "None" not in text


def test_falling_memory_has_not_grown() -> None:
    text = budgets.sentence(held(Standing.KEPT, value=-500 * MB), Screen(width=100))
    assert text == "RSS of main changed by -500 ± 100 MB per 50 steps."


def test_broken_budgets_come_first_and_fit_the_screen() -> None:
    found = leak(held(Standing.KEPT), held(Standing.UNCLEAR), held(Standing.BROKEN))
    for width in (40, 80):
        lines = budgets.lines(found, Screen(width=width))
        assert all(cell_len(line.plain) <= width for line in lines)
    firsts = [line.plain.split()[0] for line in budgets.lines(found, Screen(width=200))]
    assert [word for word in firsts if word in {"BROKEN", "UNCLEAR", "kept"}] == [
        "BROKEN",
        "UNCLEAR",
        "kept",
    ]


# ---- JUnit -----------------------------------------------------------------------------------


def test_junit_counts_what_it_holds() -> None:
    found = leak(held(Standing.KEPT), held(Standing.UNCLEAR), held(Standing.BROKEN))
    [suite] = suites(diagnoses.of(found))
    assert suite.attrib == {
        "name": "run.csv",
        "tests": "4",
        "failures": "2",
        "errors": "1",
        "skipped": "0",
    }


def test_junit_fails_only_on_what_fails_the_command() -> None:
    found = leak(held(Standing.BROKEN))
    [suite] = suites(diagnoses.of(found), failing=frozenset({Standing.BROKEN}))
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    doubt = suites(diagnoses.inconclusive(), failing=frozenset())
    assert [s.get("skipped") for s in doubt] == ["1"]


def test_junit_names_sources_that_could_not_be_read() -> None:
    root = suites(diagnoses.many_recordings())
    unread = [s for s in root if s.find("testcase[@name='read']/error") is not None]
    assert [s.get("name") for s in unread] == ["runs/empty.csv"]


def test_junit_of_nothing_measured_is_an_error() -> None:
    [suite] = suites(diagnoses.nothing_measured())
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")


@pytest.mark.parametrize("name", diagnoses.SCREENS)
def test_junit_is_well_formed_whatever_it_is_of(name: str) -> None:
    suites(diagnoses.SCREENS[name]())


def test_junit_holds_no_character_that_xml_forbids() -> None:
    everything = "".join(map(chr, [*range(0x100), 0xD800, 0xDFFF, 0xFFFE, 0xFFFF, 0x1F600]))
    named = replace(
        leak(held(Standing.BROKEN, replace(GROWTH, text=everything))), source=everything
    )
    text = junit.document(diagnoses.of(named), failing=ALL)
    root = ET.fromstring(text.encode("utf-8"))
    shown = root[0].get("name")
    assert shown is not None
    assert "\\x00" in shown
    assert "\\xd800" in shown
    assert "\t" in shown
    assert chr(0x1F600) in shown


# ---- Markdown --------------------------------------------------------------------------------


def test_markdown_begins_with_the_verdict_and_holds_both_tables() -> None:
    text = markdown.document(diagnoses.of(leak(held(Standing.BROKEN))))
    assert text.startswith("### ❌ LEAK: ")
    assert "| ❌ broken | --max-growth 1GB/50steps | RSS of main grew by" in text
    assert "| VRAM | 14.1 GB |" in text or "| RSS | " in text


@pytest.mark.parametrize("name", diagnoses.SCREENS)
def test_markdown_tables_keep_their_columns(name: str) -> None:
    for block in markdown.document(diagnoses.SCREENS[name]()).split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        cells = {row.replace("\\|", "").count("|") for row in rows}
        assert len(cells) <= 1


def test_markdown_has_the_chart_in_characters_or_the_picture() -> None:
    found = diagnoses.SCREENS["leak"]()
    chart = markdown.document(found).split("```")[1]
    assert chart.startswith("text\n")
    assert "onset, step 15" in chart
    assert chart.isascii()
    with_picture = markdown.document(found, picture="a picture.png")
    assert "```" not in with_picture
    assert "(a%20picture.png)" in with_picture
    many = replace(found, recordings=found.recordings * 50)
    assert markdown.document(many).count("```text") == 8


def test_markdown_chart_cannot_be_ended_by_a_name() -> None:
    (hit, *_) = diagnoses.leak().limit_hits
    named = replace(hit, limit="````\n<img src=x>")
    hostile = replace(diagnoses.leak(), limit_hits=(named,))
    text = markdown.document(diagnoses.of(diagnoses.recording("r.csv", hostile)))
    begin = text.index("`````text\n")
    assert "````" in text[begin + 5 : text.index("\n`````\n", begin)]


def test_markdown_lets_nothing_from_outside_act() -> None:
    name = "<script>|[x](http://y)`![i](z)*#\n| a |"
    text = markdown.document(diagnoses.of(replace(leak(), source=name)))
    assert "<script>" not in text
    assert "[x](http" not in text
    assert "\n| a |" not in text
    assert "\x1b" not in markdown.document(diagnoses.hostile())


# ---- GitHub ----------------------------------------------------------------------------------


def commands(diagnosis: Diagnosis, failing: frozenset[Verdict | Standing] = ALL) -> list[str]:
    return list(github_annotations.commands(diagnosis, failing=failing))


def test_leaks_and_broken_budgets_are_errors_and_what_passes_a_warning() -> None:
    found = diagnoses.of(leak(held(Standing.BROKEN), held(Standing.KEPT), held(Standing.UNCLEAR)))
    assert [c.split(" ")[0] for c in commands(found)] == ["::error"] * 3
    lenient = commands(found, failing=frozenset({Verdict.LEAK}))
    assert [c.split(" ")[0] for c in lenient] == ["::error", "::warning", "::warning"]


def test_calm_runs_are_no_annotations() -> None:
    assert commands(diagnoses.warmup()) == []


def test_a_name_from_outside_can_start_no_command_of_its_own() -> None:
    name = "a\n::error::forged\r%0A::set-output name=x::y, z:\x1b[31m"
    for command in commands(diagnoses.of(replace(leak(held(Standing.BROKEN)), source=name))):
        assert "\n" not in command
        assert "\r" not in command
        assert "\x1b" not in command
        assert "%0A" not in command
        head = command.removeprefix("::error title=").split("::")[0]
        assert ":" not in head
        assert "," not in head
