"""The terminal report as a whole: what it shows, at every width, and that it does no harm."""

from __future__ import annotations

import enum
import re
import unicodedata
from dataclasses import replace

import pytest
from report import diagnoses
from report.draw_screens import CASES, DETAILED, FOLDER, path, text
from rich.cells import cell_len

from memdiag.report.text import wording
from memdiag.report.text.screen import Detail
from memdiag.values.findings import (
    Diagnosis,
    Evidence,
    EvidenceKind,
    Finding,
    FirstLimit,
    Interval,
)
from memdiag.values.measurements import Axis, AxisKind, Role, Unit
from memdiag.values.verdict import Argument, Reason, Side, Verdict

WIDTHS = (40, 60, 80, 100, 160)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(("name", "width", "ascii_only"), CASES)
def test_screen_is_as_expected(name: str, width: int, ascii_only: bool) -> None:
    shown = text(diagnoses.SCREENS[name](), width=width, ascii_only=ascii_only)
    assert shown == path(name, width, ascii_only).read_text(encoding="utf-8")


def test_every_expected_screen_belongs_to_a_case() -> None:
    detailed = {path(name, 80, False, Detail.SERIES).name for name in DETAILED}
    assert {file.name for file in FOLDER.iterdir()} == {
        path(*case).name for case in CASES
    } | detailed


@pytest.mark.parametrize("name", DETAILED)
def test_detailed_screen_is_as_expected(name: str) -> None:
    shown = text(diagnoses.SCREENS[name](), width=80, detail=Detail.SERIES)
    assert shown == path(name, 80, False, Detail.SERIES).read_text(encoding="utf-8")


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", diagnoses.SCREENS)
def test_every_line_fits_and_ends_in_no_blank(name: str, width: int, ascii_only: bool) -> None:
    for detail in (Detail.FACTS, Detail.SERIES):
        shown = text(diagnoses.SCREENS[name](), width=width, ascii_only=ascii_only, detail=detail)
        *lines, last = shown.splitlines() or [""]
        for line in lines:
            assert cell_len(line) <= width, line
            assert line == line.rstrip(" "), line
        # (The path in the last line is never cut.)
        assert last.startswith("memdiag: ") or not diagnoses.SCREENS[name]().recordings
        assert shown.isascii() or not ascii_only


@pytest.mark.parametrize("name", diagnoses.SCREENS)
def test_a_file_gets_no_escapes(name: str) -> None:
    shown = text(diagnoses.SCREENS[name](), width=80)
    assert {unicodedata.category(c) for c in shown.replace("\n", "")}.isdisjoint({"Cc", "Cf"})


@pytest.mark.parametrize("ascii_only", [False, True])
def test_what_lies_high_between_the_steps_is_told_and_drawn(ascii_only: bool) -> None:
    made = diagnoses.series([(float(x), 1e9) for x in range(200)], Verdict.STABLE, Reason.FLAT)
    for height, told in ((5e9, True), (1.01e9, False)):
        tops = tuple((float(x), height) for x in range(200))
        found = diagnoses.of(diagnoses.recording("a.csv", replace(made, tops=tops)))
        shown = text(found, width=80, ascii_only=ascii_only, detail=Detail.SERIES)
        assert ("reaches 5.00 GB (dotted)." in " ".join(shown.split())) == told
        assert (("o" if ascii_only else "·") * 60 in shown) == told


def test_hostile_names_reach_a_terminal_only_as_text() -> None:
    shown = _COLOUR.sub("", text(diagnoses.hostile(), width=100, colour=True))
    assert {unicodedata.category(c) for c in shown.replace("\n", "")}.isdisjoint({"Cc", "Cf", "Cs"})
    assert "[bold]x[/bold]" in shown.replace("\n", "")


def test_colours_are_told_apart_on_dark_and_light_backgrounds() -> None:
    for diagnosis in diagnoses.SCREENS.values():
        codes = re.findall(r"\x1b\[([0-9;]*)m", text(diagnosis(), width=80, colour=True))
        used = {code for codes_of_one in codes for code in codes_of_one.split(";")}
        # bold, dim, italic, reverse, red, green, magenta, and "end of style"
        assert used <= {"", "0", "1", "2", "3", "7", "31", "32", "35"}


@pytest.mark.parametrize("name", diagnoses.SCREENS)
def test_colour_changes_no_text(name: str) -> None:
    diagnosis = diagnoses.SCREENS[name]()
    coloured = _COLOUR.sub("", text(diagnosis, width=80, colour=True))
    assert coloured == text(diagnosis, width=80)


@pytest.mark.parametrize(
    ("table", "members"),
    [
        (wording.STYLES, Verdict),
        (wording.REASONS, Reason),
        (wording.ROLES, Role),
        (wording.EVIDENCE, EvidenceKind),
    ],
)
def test_every_member_has_its_words(table: dict[object, str], members: type[enum.Enum]) -> None:
    assert set(table) == set(members)
    assert len(set(table.values())) >= len(table) - 1
    assert all(table.values())


@pytest.mark.parametrize("kind", AxisKind)
@pytest.mark.parametrize("unit", Unit)
def test_every_unit_and_axis_can_be_shown(kind: AxisKind, unit: Unit) -> None:
    finding = replace(diagnoses.leak(), unit=unit, axis=Axis(name="x", kind=kind))
    assert "LEAK" in one(finding)


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("reason", Reason)
def test_every_verdict_is_shown_with_every_reason(verdict: Verdict, reason: Reason) -> None:
    shown = one(replace(diagnoses.leak(), verdict=verdict, reason=reason))
    assert verdict.name in shown.split("\n")[1]
    assert shown.split("\n")[-2].startswith(f"memdiag: {verdict.name}")


def test_leak_that_python_objects_alone_show_has_a_plain_name() -> None:
    trace = [(0.0, 1e6), (900.0, 1.9e6)]
    leak = diagnoses.series(trace, Verdict.LEAK, Reason.OUTLASTS_WARMUP)
    growth = Interval(value=1e3, low=990.0, high=1010.0)
    leak = replace(
        leak, metric="python_blocks", role=Role.OBJECTS, unit=Unit.COUNT, growth_per_x=growth
    )
    assert "number of Python objects grows 1,000 per step" in one(leak)
    assert "open_sockets: +1,000 per step" in one(replace(leak, metric="open_sockets"))


def test_free_memory_falls_and_memory_in_use_grows() -> None:
    trace = [(0.0, 15.9e9), (900.0, 15.0e9)]
    leak = diagnoses.series(trace, Verdict.LEAK, Reason.OUTLASTS_WARMUP)
    growth = Interval(value=1e6, low=0.99e6, high=1.01e6)
    grew = Argument(
        check="growth",
        reason=Reason.OUTLASTS_WARMUP,
        text="it grew for 900 steps",
        numbers={},
        side=Side.FOR_LEAK,
        is_decisive=True,
    )
    leak = replace(
        leak,
        metric="gpu_memory_free_bytes",
        role=Role.DEVICE,
        growth_per_x=growth,
        falling=True,
        trail=(grew,),
    )
    shown = one(leak)
    assert "LEAK   free GPU memory falls 1.00 MB per step" in shown
    assert "-1.000 ± 0.010 MB per step: 15.9 GB at step 0, 15.0 GB at step 900." in shown
    assert "Memory in use grew for 900 steps" in shown
    assert "host_free falls 1.00 MB per step" in one(
        replace(leak, metric="host_free_bytes", role=Role.HOST)
    )


def one(finding: Finding, width: int = 100, detail: Detail = Detail.FACTS) -> str:
    found = diagnoses.of(diagnoses.recording("a.csv", finding))
    return text(found, width=width, detail=detail)


def test_the_verdict_is_the_first_thing_and_the_overall_line_the_last() -> None:
    two = diagnoses.of(diagnoses.stable().recordings[0], diagnoses.warmup().recordings[0])
    lines = text(two, width=80).rstrip("\n").split("\n")
    assert lines[1].split()[0] == "STABLE"
    assert lines[-1] == "memdiag: WARMUP (1 warmup and 1 stable)"


def test_the_last_line_of_one_recording_has_its_verdict_and_place() -> None:
    (kept,) = diagnoses.stable().recordings
    kept = replace(kept, source=".memdiag/runs/20261123-0912-train-7/recording.csv")
    *_, last = text(diagnoses.of(kept), width=80).rstrip("\n").split("\n")
    assert last == "memdiag: STABLE flat at 4.18 GB · .memdiag/runs/20261123-0912-train-7"
    assert text(diagnoses.of(kept), width=80, detail=Detail.VERDICT) == f"{last}\n"


def test_many_recordings_get_a_line_each_leaks_first() -> None:
    lines = text(diagnoses.many_recordings(), width=100).split("\n")
    verdicts = [line.split()[0] for line in lines[2:8]]
    assert verdicts == ["LEAK", "LEAK", "INCONCLUSIVE", "WARMUP", "STABLE", "STABLE"]
    assert "1 not analyzed" in lines[-2]


def test_the_deciding_series_comes_first_and_long_tables_are_counted() -> None:
    shown = text(diagnoses.many_series(), width=100, detail=Detail.SERIES)
    rows = shown[shown.index(" series   ") :].split("\n")
    assert "worker 17 of" in rows[1]
    assert sum(row.startswith(" RSS  ") for row in rows) == 8
    assert " and 24 more, all stable" in rows


def test_an_unsettled_run_says_how_much_longer() -> None:
    shown = " ".join(text(diagnoses.inconclusive(), width=80).split())
    assert "about 58 more steps (1 min 50 s at this pace)" in shown


def test_growth_is_told_per_epoch_where_epochs_are_known() -> None:
    growth = Interval(value=29.3e9, low=29e9, high=30e9)
    known = replace(diagnoses.leak(), growth_per_epoch=growth)
    shown = " ".join(text(diagnoses.of(diagnoses.recording("a.csv", known)), width=80).split())
    assert "MB per step (+29.3 GB per epoch): " in shown


def test_a_run_that_cannot_settle_says_so() -> None:
    finding = diagnoses.inconclusive().recordings[0].series[0]
    assert finding.need_more is not None
    need = replace(finding.need_more, more_x=None, more_s=None, why="")
    assert "not decidable in this run." in one(replace(finding, need_more=need))


def test_a_limit_that_another_series_reaches_is_at_the_rate_of_that_one() -> None:
    exact = diagnoses.series([(0, 0), (9, 9e5)], Verdict.LEAK, Reason.OUTLASTS_WARMUP)
    pages = replace(
        diagnoses.series([(0, 1e8), (9, 1.9e8)], Verdict.LEAK, Reason.EXACT_METRIC), process="main"
    )
    reached = FirstLimit(
        limit="host RAM",
        limit_bytes=2_000_000_000,
        series=1,
        at_x=diagnoses.interval(190, 0),
        left_s=None,
        confidence=0.9,
    )
    found = replace(diagnoses.recording("a.csv", exact, pages), first_limit=reached)
    shown = " ".join(text(diagnoses.of(found), width=80).split())
    assert "host RAM (2.00 GB) is reached near step 190, at the rate of RSS of main" in shown
    assert "(+10.0 MB per step)" in shown
    own = replace(found, first_limit=replace(reached, series=0))
    assert "near step 190, at this rate." in text(diagnoses.of(own), width=80)


@pytest.mark.parametrize(
    ("kinds", "advice"),
    [
        ({EvidenceKind.TENSORS_GROW}, "loss.item()"),
        ({EvidenceKind.TENSORS_FLAT}, "outside Python tensors"),
        ({EvidenceKind.IN_USE_FLAT}, "MALLOC_ARENA_MAX"),
        ({EvidenceKind.ALLOCATED_FLAT}, "expandable_segments"),
        ({EvidenceKind.RESERVED_FLAT}, "NCCL"),
        ({EvidenceKind.PROCESSES_GROW}, "DataLoader"),
        ({EvidenceKind.COUNTER_GROWS}, "Find what increases"),
    ],
)
def test_advice_follows_from_the_evidence(kinds: set[EvidenceKind], advice: str) -> None:
    leak = diagnoses.leak_over_time().recordings[0]
    evidence = tuple(Evidence(kind=kind, subject="copies") for kind in kinds)
    without = text(diagnoses.of(leak), width=100)
    with_it = text(diagnoses.of(replace(leak, evidence=evidence)), width=100)
    assert advice not in without
    assert advice in " ".join(with_it.split())


def test_a_counter_that_rises_with_memory_has_bytes_per_count() -> None:
    leak = diagnoses.leak_over_time().recordings[0]
    (memory,) = leak.series
    assert memory.growth_per_x is not None
    slower = memory.growth_per_x.scaled(1 / 2e6)
    copies = replace(memory, metric="copies", process="", unit=Unit.COUNT, growth_per_x=slower)
    grows = Evidence(kind=EvidenceKind.COUNTER_GROWS, subject="rss_bytes", against="copies")
    shown = text(diagnoses.of(replace(leak, series=(memory, copies), evidence=(grows,))), width=100)
    assert "memory grows by 2.00 MB per count." in " ".join(shown.split())


def test_a_phase_that_chance_explains_is_not_blamed() -> None:
    leak = diagnoses.leak()
    by_chance = tuple(replace(phase, p_value=0.4) for phase in leak.phases)
    assert "Check what each" in one(leak)
    assert "Check what each" not in one(replace(leak, phases=by_chance))


def test_a_calm_run_is_told_that_there_is_nothing_to_fix() -> None:
    assert "Nothing to fix" in text(diagnoses.warmup(), width=80)
    assert "Check" not in text(diagnoses.warmup(), width=80)


@pytest.mark.parametrize("calm", [diagnoses.warmup(), diagnoses.stable()])
def test_tensors_that_accumulate_beside_calm_memory_are_something_to_fix(calm: Diagnosis) -> None:
    found = calm.recordings[0]
    tensors = replace(found.series[0], metric="tensors", role=Role.TENSORS, process="main")
    grows = Evidence(kind=EvidenceKind.COUNT_GROWS, subject="rss_bytes", against="main tensors")
    both = replace(found, series=(*found.series, tensors), evidence=(grows,))
    shown = " ".join(text(diagnoses.of(both), width=80).split())
    assert "The number of tensors" in shown
    assert "loss.item()" in shown
    assert "Nothing to fix" not in shown


def test_rising_peaks_on_a_flat_floor_are_a_warning() -> None:
    calm = replace(diagnoses.stable().recordings[0].series[0], peaks_grow=True)
    assert " warning  the baseline is stable, but the peaks rise." in one(calm)


def _of_one_process(processes: float) -> str:
    main = replace(diagnoses.leak(), process="main", metric="rss_bytes")
    tree = replace(main, process="tree")
    number = replace(
        tree, metric="processes", role=Role.PROCESSES, verdict=Verdict.STABLE, peak_value=processes
    )
    found = diagnoses.of(diagnoses.recording("run.csv", main, tree, number))
    return text(found, width=80, detail=Detail.SERIES)


def test_totals_are_told_where_there_is_more_than_one_process() -> None:
    assert "all processes" not in _of_one_process(1)
    assert "all processes" in _of_one_process(2)


def test_a_rate_of_a_few_samples_that_may_be_anything_is_not_told() -> None:
    trace = [(float(x), 1e9 + x) for x in range(4)]
    wild = replace(
        diagnoses.series(trace, Verdict.WARMUP, Reason.PLATEAU),
        metric="uss_bytes",
        growth_per_x=diagnoses.interval(1e7, 5e9),
    )
    found = diagnoses.of(diagnoses.recording("run.csv", diagnoses.leak(), wild))
    shown = text(found, width=80, detail=Detail.SERIES)
    line = next(line for line in shown.split("\n") if line.strip().startswith("USS"))
    assert "per step" not in line


def test_growth_too_small_for_three_digits_is_told_as_a_difference() -> None:
    trace = [(float(x), 120e6 + 500 * x) for x in range(0, 400, 10)]
    leak = diagnoses.series(trace, Verdict.LEAK, Reason.OUTLASTS_WARMUP)
    shown = " ".join(text(diagnoses.of(diagnoses.recording("run.csv", leak)), width=80).split())
    assert "per step: 195 KB more at step 390 than at step 0." in shown


def test_growth_never_begins_under_all_that_was_read() -> None:
    steep = replace(
        diagnoses.series(
            [(0.0, 5e6), (1.0, 90e6), (2.0, 110e6)], Verdict.LEAK, Reason.EXACT_METRIC
        ),
        segments=(diagnoses.segment((0.0, -1e6), (2.0, 110e6), 3),),
        onset_x=diagnoses.interval(0.0),
    )
    shown = " ".join(text(diagnoses.of(diagnoses.recording("run.csv", steep)), width=80).split())
    assert "per step: 5.00 MB at step 0, " in shown


def test_growth_does_not_end_below_what_the_last_moments_gave_back() -> None:
    trace = [(float(x), 320e6 + 920 * x) for x in range(0, 4000, 100)]
    ended = [*trace, (3950.0, 320.1e6)]  # the program takes down what it had
    leak = diagnoses.series(ended, Verdict.LEAK, Reason.OUTLASTS_WARMUP)
    shown = " ".join(text(diagnoses.of(diagnoses.recording("run.csv", leak)), width=80).split())
    assert "320 MB at step 0, 324 MB at step 3,900" in shown


def test_a_curve_that_levels_off_has_not_stopped() -> None:
    """Where more is to come than the plateau spans."""
    settled = diagnoses.warmup().recordings[0].series[0]
    by = Argument(
        check="saturating",
        side=Side.FOR_STABLE,
        text="it is leveling off, with only {left_y} of growth left",
        numbers={"left_y": 9e9},
        reason=Reason.PLATEAU,
        is_decisive=True,
    )
    levels = diagnoses.recording("run.csv", replace(settled, trail=(by,)))
    shown = " ".join(text(diagnoses.of(levels), width=100).split())
    assert "memory is leveling off" in shown
    assert "and is leveling off; about 9.00 GB of growth is left" in shown
    assert "then stopped" not in shown


def test_a_probability_below_its_limit_is_not_rounded_up_to_it() -> None:
    growing = diagnoses.series(
        [(0.0, 1e9), (1.0, 2e9)], Verdict.INCONCLUSIVE, Reason.STILL_CLIMBING
    )
    by = Argument(
        check="warmup_prior",
        side=Side.AGAINST_LEAK,
        text="the probability of a leak is {posterior_share}, and {least_share} is needed",
        numbers={"posterior_share": 0.8996, "least_share": 0.9},
        reason=Reason.STILL_CLIMBING,
        is_decisive=True,
    )
    open_ = diagnoses.recording("run.csv", replace(growing, trail=(by,)))
    shown = " ".join(text(diagnoses.of(open_), width=100).split())
    assert "the probability of a leak is 89%, and 90% is needed" in shown.lower()


def test_plan_for_the_plateau_counts_all_processes() -> None:
    main = replace(diagnoses.warmup().recordings[0].series[0], process="main")
    tree = replace(main, process="tree", peak_value=3 * main.peak_value)
    shown = " ".join(text(diagnoses.of(diagnoses.recording("r.csv", main, tree)), width=80).split())
    assert "for all processes" in shown
