"""Budgets held against findings: kept, broken, or unclear, and never kept without a figure."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report import diagnoses
from report.diagnoses import MB, interval

from memdiag.analysis.forecasting.budgets import hold
from memdiag.values.budgets import Budget, BudgetKind, Stretch, parse_budget
from memdiag.values.findings import BudgetFinding, Finding, Plateau, Standing
from memdiag.values.measurements import Axis, AxisKind, Role, Unit
from memdiag.values.verdict import Reason, Verdict

TRACE = [
    (float(step), (1000.0 + (900 - step if step < 90 else step % 3)) * MB) for step in range(200)
]
CLOCK = Axis(name="at_s", kind=AxisKind.SECONDS)


def finding(**changes: object) -> Finding:
    """A run of 200 steps that ends with 5 +- 1 MB per step, peak 1.9 GB."""
    made = diagnoses.series(TRACE, Verdict.STABLE, Reason.FLAT)
    made = replace(made, growth_per_x=interval(5 * MB, 1 * MB))
    return replace(made, **changes)  # type: ignore[arg-type]


def held(budget: Budget, *findings: Finding) -> list[BudgetFinding]:
    return list(hold(diagnoses.recording("a.csv", *findings), [budget]).budgets)


def growth(text: str) -> Budget:
    return parse_budget(BudgetKind.GROWTH, text, given_as="--max-growth")


def peak(text: str) -> Budget:
    return parse_budget(BudgetKind.PEAK, text, given_as="--max-peak")


def variation(text: str, since: Stretch | None = None) -> Budget:
    return parse_budget(BudgetKind.VARIATION, text, given_as="--max-variation", since=since)


def test_a_budget_of_the_variation_counts_what_lies_between_the_steps() -> None:
    tops = tuple((x, y + 2000 * MB) for x, y in TRACE)
    [found] = held(variation("1.9GB"), finding(tops=tops))
    assert found.standing is Standing.BROKEN


@pytest.mark.parametrize(
    ("text", "standing"),
    [
        ("301MB/50steps", Standing.KEPT),  # 250 +- 50
        ("250MB/50steps", Standing.UNCLEAR),
        ("199MB/50steps", Standing.BROKEN),
        ("0/step", Standing.BROKEN),
    ],
)
def test_growth_is_judged_by_its_whole_interval(text: str, standing: Standing) -> None:
    [found] = held(growth(text), finding())
    assert found.standing is standing
    assert found.measured is not None
    assert (found.why != "") == (standing is Standing.UNCLEAR)


def test_growth_per_epoch_needs_epochs_beside_the_steps() -> None:
    budget = growth("400MB/epoch")
    [unknown] = held(budget, finding())
    assert (unknown.standing, unknown.why) == (
        Standing.UNCLEAR,
        "it was recorded over steps, without epochs",
    )
    [known] = held(budget, finding(growth_per_epoch=interval(500 * MB, 50 * MB)))
    assert known.standing is Standing.BROKEN


def test_growth_is_told_over_the_budgets_stretch() -> None:
    [found] = held(growth("1GB/50steps"), finding())
    assert found.measured == interval(250 * MB, 50 * MB)


def test_growth_per_time_takes_the_clock_whatever_the_axis() -> None:
    with_clock = finding(growth_per_s=interval(2 * MB, 0.1 * MB))
    [found] = held(growth("1GB/min"), with_clock)
    assert found.measured is not None
    assert found.measured.value == 120 * MB
    [over_time] = held(growth("1GB/min"), finding(axis=CLOCK))
    assert over_time.measured is not None
    assert over_time.measured.value == 300 * MB


@pytest.mark.parametrize(
    ("budget", "what"),
    [
        (growth("1GB/epoch"), finding()),
        (growth("1GB/min"), finding()),
        (growth("1GB/step"), finding(axis=CLOCK)),
        (growth("1GB/step"), finding(growth_per_x=None)),
        (peak("1GB"), finding(unit=Unit.COUNT)),
        (peak("1GB"), finding(peak_value=float("nan"))),
        (peak("vram=1GB"), finding()),
        (variation("1GB", Stretch(length=500, axis=AxisKind.STEP)), finding()),
        (variation("1GB", Stretch(length=90, axis=AxisKind.STEP)), finding(axis=CLOCK)),
    ],
)
def test_what_cannot_be_measured_is_unclear_with_a_reason(budget: Budget, what: Finding) -> None:
    [found] = held(budget, what)
    assert found.standing is Standing.UNCLEAR
    assert found.why


def test_a_recording_without_series_keeps_no_budget() -> None:
    nothing = replace(diagnoses.recording("a.csv", finding()), series=(), decided_by=None)
    [found] = hold(nothing, [peak("16GB")]).budgets
    assert (found.standing, found.why) == (Standing.UNCLEAR, "no memory was recorded")


def test_peak_is_the_highest_reading() -> None:
    assert held(peak("1.9GB"), finding())[0].standing is Standing.KEPT
    assert held(peak("1.89GB"), finding())[0].standing is Standing.BROKEN


def test_variation_counts_from_the_given_position_on() -> None:
    since = Stretch(length=90, axis=AxisKind.STEP)
    assert held(variation("2MB", since), finding())[0].standing is Standing.KEPT
    assert held(variation("1MB", since), finding())[0].standing is Standing.BROKEN
    assert held(variation("500MB"), finding())[0].standing is Standing.BROKEN


def test_variation_after_a_time_counts_from_the_first_sample() -> None:
    late = [(1e9 + x, y) for x, y in TRACE]
    clocked = finding(axis=CLOCK, trace=tuple(late), first_x=1e9, last_x=1e9 + 199)
    since = Stretch(length=90, axis=AxisKind.SECONDS)
    assert held(variation("2MB", since), clocked)[0].standing is Standing.KEPT


def test_a_budget_without_metric_is_for_host_and_device_memory() -> None:
    series = [
        finding(),
        finding(metric="uss_bytes", role=Role.UNIQUE),
        finding(metric="vram_bytes", role=Role.DEVICE),
        finding(metric="tensors", role=Role.TENSORS, unit=Unit.COUNT),
    ]
    assert [f.metric for f in held(peak("16GB"), *series)] == ["rss_bytes", "vram_bytes"]


def test_a_budget_without_metric_takes_what_memory_there_is() -> None:
    heap = finding(metric="heap_used_bytes", role=Role.COLLECTED_HEAP)
    address_space = finding(metric="vsz_bytes", role=Role.VIRTUAL)
    assert [f.metric for f in held(peak("16GB"), heap, address_space)] == ["heap_used_bytes"]


def test_the_tree_stands_for_its_processes() -> None:
    series = [finding(process="tree"), finding(process="main"), finding(process="rank 1")]
    assert [f.process for f in held(peak("16GB"), *series)] == ["tree"]
    assert [f.process for f in held(peak("16GB"), *series[1:])] == ["main", "rank 1"]


@pytest.mark.parametrize("name", ["rss", "RSS", "rss_bytes", "RSS (MB)"])
def test_a_metric_is_known_by_any_of_its_names(name: str) -> None:
    series = [finding(column="RSS (MB)"), finding(metric="x_bytes", column="x")]
    assert [f.metric for f in held(peak(f"{name}=16GB"), *series)] == ["rss_bytes"]


def test_a_count_is_held_to_a_number() -> None:
    tensors = finding(metric="tensors", unit=Unit.COUNT, growth_per_x=interval(0.2, 0.01))
    assert held(growth("tensors=100/1000steps"), tensors)[0].standing is Standing.BROKEN
    assert held(growth("tensors=300/1000steps"), tensors)[0].standing is Standing.KEPT
    assert held(growth("tensors=1GB/1000steps"), tensors)[0].standing is Standing.UNCLEAR


def test_a_count_that_stays_has_not_grown_by_one() -> None:
    level = Plateau(since_x=interval(90), low_value=7070, high_value=7070, lasted_x=150)
    tensors = finding(metric="tensors", unit=Unit.COUNT, plateau=level)
    assert held(growth("tensors=0/step"), tensors)[0].standing is Standing.KEPT
    moving = finding(metric="tensors", unit=Unit.COUNT, plateau=replace(level, high_value=7071))
    assert held(growth("tensors=0/step"), moving)[0].standing is not Standing.KEPT


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("res", "nothing called res was recorded; did you mean rss?"),
        ("latency", "nothing called latency was recorded, but rss, vram"),
    ],
)
def test_a_metric_that_was_not_recorded_is_unclear_and_says_what_was(name: str, why: str) -> None:
    there = finding(), finding(metric="vram_bytes", column="vram_bytes")
    [found] = held(peak(f"{name}=2GB"), *there)
    assert (found.standing, found.why) == (Standing.UNCLEAR, why)
