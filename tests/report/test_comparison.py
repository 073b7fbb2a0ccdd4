"""The report of a comparison: complete words, every width, harmless names, valid JSON."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator
from report.diagnoses import HOSTILE, STEP, interval
from rich.cells import cell_len
from rich.console import Console

from memdiag.report.formats import comparison_text, comparison_wording, json_documents
from memdiag.report.formats.json_documents import comparison as document
from memdiag.report.formats.json_documents import schema_text
from memdiag.report.text.screen import Detail
from memdiag.values.comparison import Comparison, Difference, Effect, Measure, SeriesComparison, Why
from memdiag.values.findings import Failure, Interval
from memdiag.values.measurements import Role, Unit
from memdiag.values.verdict import Verdict

MB = 1e6
VALIDATOR = Draft202012Validator(json.loads(schema_text("comparison")))
RATE = Difference(
    measure=Measure.GROWTH,
    base=interval(291 * MB, 12 * MB),
    candidate=interval(1 * MB, 2 * MB),
    change=interval(-290 * MB, 12.2 * MB),
    ratio=interval(0.003, 0.007),
    smallest_effect=17 * MB,
)
PEAK = Difference(
    measure=Measure.PEAK,
    base=interval(14136 * MB, 800 * MB),
    candidate=interval(4184 * MB, 240 * MB),
    change=interval(-9952 * MB, 840 * MB),
    ratio=None,
    smallest_effect=1200 * MB,
)
SERIES = SeriesComparison(
    metric="vram_bytes",
    process="",
    role=Role.DEVICE,
    unit=Unit.BYTES,
    axis=STEP,
    effect=Effect.FIXED,
    why=Why.LEAK_GONE,
    base_verdicts=(Verdict.LEAK,),
    candidate_verdicts=(Verdict.STABLE,),
    differences=(RATE, PEAK),
    decided_by=0,
    common_x=(0.0, 49.0),
    need_more_x=None,
    more_runs=False,
    trace_base=((0.0, 4184 * MB), (49.0, 14136 * MB)),
    trace_candidate=((0.0, 4184 * MB), (30.0, 4200 * MB)),
)
FOUND = Comparison(
    base=("before.csv",),
    candidate=("after.csv",),
    effect=Effect.FIXED,
    series=(SERIES,),
    decided_by=0,
)


def text(
    compared: Comparison,
    *,
    width: int = 80,
    ascii_only: bool = False,
    detail: Detail = Detail.FACTS,
) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, legacy_windows=False)
    report = comparison_text.render(compared, width=width, ascii_only=ascii_only, detail=detail)
    console.print(report)
    return out.getvalue()


def of(series: SeriesComparison) -> Comparison:
    return replace(FOUND, series=(series,), effect=series.effect)


def test_effect_and_what_it_comes_to_are_the_first_line() -> None:
    lines = text(FOUND).splitlines()
    assert lines[1].split("   ") == ["  FIXED", "the leak of 291 MB per step is gone"]
    last = "memdiag: FIXED the leak of 291 MB per step is gone · before.csv -> after.csv"
    assert lines[-1] == last
    assert text(FOUND, detail=Detail.VERDICT) == f"{last}\n"


def test_a_peak_that_is_higher_without_the_leak_is_named() -> None:
    higher = replace(PEAK, candidate=Interval.around(17.9e9), change=Interval.around(3.8e9, 1e9))
    shown = " ".join(text(of(replace(SERIES, differences=(RATE, higher)))).split())
    assert "But its peak is higher: 17.9 GB instead of 14.1 GB. To keep it so" in shown
    assert "Nothing to fix" not in shown


def test_runs_that_were_kept_have_the_names_that_list_shows() -> None:
    names = ("20261123-183934-train-24254", "20261123-184106-train-24254")
    paths = [(f".memdiag/runs/{name}/recording.csv",) for name in names]
    shown = text(replace(FOUND, base=paths[0], candidate=paths[1]), width=80)
    assert f"{names[0]} against {names[1]}." in " ".join(shown.split())


def test_table_holds_before_after_change_and_what_would_have_shown() -> None:
    table = [line for line in text(FOUND, width=100).splitlines() if "growth per step" in line]
    cells = [cell.strip() for cell in table[0].split("   ") if cell.strip()]
    assert cells[1:] == ["+291 ± 12 MB", "+1.0 ± 2.0 MB", "-290 ± 12 MB", "17.0 MB"]


def test_of_a_base_near_nothing_no_share_is_told() -> None:
    assert "smallest detectable change is 17.0 MB per step (6% of the old value)." in " ".join(
        text(FOUND).split()
    )
    flat = replace(RATE, base=interval(0.001 * MB, 0.002 * MB))
    shown = " ".join(text(of(replace(SERIES, differences=(flat,)))).split())
    assert "smallest detectable change is 17.0 MB per step." in shown


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_line_is_wider_than_the_screen(width: int, ascii_only: bool) -> None:
    many = replace(FOUND, series=(SERIES, replace(SERIES, metric="rss_bytes")))
    for line in text(many, width=width, ascii_only=ascii_only, detail=Detail.SERIES).splitlines():
        assert cell_len(line) <= min(width, 100)
        assert not ascii_only or line.isascii()


def test_both_curves_are_drawn_and_told_apart_without_colour() -> None:
    shown = text(FOUND, ascii_only=True, detail=Detail.SERIES)
    assert "ooo before" in shown
    assert shown.count("o") > 40


@pytest.mark.parametrize(
    ("effect", "why", "measure"),
    [(effect, why, Measure.GROWTH) for effect in Effect for why in Why]
    + [(effect, Why.LEVEL_CHANGED, measure) for effect in Effect for measure in Measure],
)
def test_every_effect_rule_and_measure_has_words_and_a_valid_document(
    effect: Effect, why: Why, measure: Measure
) -> None:
    by = replace(RATE, measure=measure)
    series = replace(SERIES, effect=effect, why=why, differences=(by,), need_more_x=12.5)
    shown = text(of(series))
    assert comparison_wording.name(effect) in shown.splitlines()[1]
    assert "None" not in shown
    VALIDATOR.validate(json.loads(json_documents.text(document(of(series), 0))))


def test_schema_knows_every_effect_and_rule_and_nothing_else() -> None:
    schema = json.loads(schema_text("comparison"))
    assert set(schema["$defs"]["Effect"]["enum"]) == {effect.value for effect in Effect}
    assert set(schema["$defs"]["Why"]["enum"]) == {why.value for why in Why}
    values = document(FOUND, 0)
    values["series"][0]["surprise"] = 1
    assert not VALIDATOR.is_valid(values)


def test_without_a_common_series_the_report_says_what_each_side_has() -> None:
    nothing = replace(
        FOUND,
        effect=Effect.INCONCLUSIVE,
        series=(),
        decided_by=None,
        notes=("only the base has rss_bytes",),
    )
    shown = text(nothing)
    assert shown.splitlines()[1].strip() == "INCONCLUSIVE   no series in common"
    assert "only the base has rss_bytes." in shown
    VALIDATOR.validate(document(nothing, 3))


def test_doubt_says_which_side_must_run_for_how_much_longer() -> None:
    doubt = replace(
        SERIES, effect=Effect.INCONCLUSIVE, why=Why.CANDIDATE_TOO_SHORT, need_more_x=99.2
    )
    assert "Record the run after for about 100 steps more to reach an answer." in text(of(doubt))
    runs = replace(doubt, why=Why.TOO_NOISY, more_runs=True)
    assert "Record more runs of each side" in text(of(runs))


def test_names_from_outside_reach_the_terminal_harmless() -> None:
    series = replace(SERIES, metric=HOSTILE, process=HOSTILE)
    hostile = replace(
        of(series),
        base=(HOSTILE,),
        candidate=(HOSTILE,) * 5,
        notes=(HOSTILE,),
        failures=(Failure(source=HOSTILE, message=HOSTILE, remedy=HOSTILE),),
    )
    shown = text(hostile, detail=Detail.SERIES)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[bold]x[/bold]" in shown
    VALIDATOR.validate(json.loads(json_documents.text(document(hostile, 2))))


def test_unbounded_intervals_are_shown_and_are_null() -> None:
    nowhere = Interval(value=1 * MB, low=float("-inf"), high=float("inf"))
    series = replace(SERIES, differences=(replace(RATE, change=nowhere),))
    assert "range unknown" in text(of(series))
    (growth,) = document(of(series), 0)["series"][0]["differences"]
    assert growth["change"] == {"value": MB, "low": None, "high": None}
