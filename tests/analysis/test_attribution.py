"""What the attribution of growth to phases promises."""

from __future__ import annotations

import numpy as np
import pytest

from memdiag.analysis.attribution.phases import MOST_PHASES, attribute
from memdiag.values.findings import PhaseGrowth
from memdiag.values.measurements import Phases

MB = 1e6


def tags(names: list[str]) -> Phases:
    known = tuple(sorted({name for name in names if name}))
    codes = np.array([known.index(name) if name else -1 for name in names], dtype=np.int64)
    return Phases(codes=codes, names=known)


def attributed(y: np.ndarray, names: list[str]) -> dict[str, PhaseGrowth]:
    rows = attribute(np.arange(len(y), dtype=float), y, tags(names)).phases
    return {row.phase: row for row in rows}


def cycles(count: int, train: int, evaluate: int) -> list[str]:
    return (["train"] * train + ["eval"] * evaluate) * count


def blamed(rows: dict[str, PhaseGrowth]) -> set[str]:
    return {name for name, row in rows.items() if row.is_attributed}


BURN_X = np.array([0, 10, 15, 20, 25, 30, 35, 40, 49.0])
BURN_Y = np.array([3864, 4184, 4184, 5624, 7096, 8536, 10008, 11480, 14136]) * MB
BURN_TAGS = ["", "", "Predict", "Correct", "Predict", "Correct", "Predict", "Correct", ""]


@pytest.mark.parametrize("start", [0, 1, 2])
def test_two_phases_that_copy_the_model_each_show_the_copy_per_event(start: int) -> None:
    rows = attribute(BURN_X[start:], BURN_Y[start:], tags(BURN_TAGS[start:])).phases
    per_event = {row.phase: row.growth_per_event.value / MB for row in rows}
    assert set(per_event) == {"Predict", "Correct"}
    assert all(1440 <= growth <= 1472 for growth in per_event.values())
    assert sum(row.share for row in rows) == pytest.approx(1.0)


def test_two_phases_that_grow_alike_are_not_set_against_each_other() -> None:
    rows = attribute(BURN_X[2:], BURN_Y[2:], tags(BURN_TAGS[2:])).phases
    assert not any(row.is_attributed for row in rows)
    assert all(row.p_value > 0.1 for row in rows)


def test_growth_at_each_evaluation_is_blamed_on_evaluation() -> None:
    names = cycles(12, 9, 1)
    y = 5000 * MB + 20 * MB * np.cumsum([name == "eval" for name in names])
    rows = attributed(y, names)
    assert blamed(rows) == {"eval"}
    assert rows["eval"].growth_per_event.value == pytest.approx(20 * MB)
    assert rows["eval"].spread == pytest.approx(0.0, abs=1e-9)
    assert rows["eval"].share == pytest.approx(1.0)
    assert rows["eval"].events == rows["eval"].growing_events == 12


def test_growth_that_shows_only_after_the_event_is_blamed_on_the_event() -> None:
    names = cycles(12, 9, 1)
    after = np.r_[False, [name == "eval" for name in names[:-1]]]
    rows = attributed(5000 * MB + 20 * MB * np.cumsum(after), names)
    assert blamed(rows) == {"eval"}


def test_a_peak_over_a_kept_part_counts_the_kept_part_alone() -> None:
    names = cycles(15, 8, 2)
    inside = np.array([name == "eval" for name in names])
    entered = np.cumsum(np.diff(np.r_[0, inside.astype(int)]) == 1)
    y = 5000 * MB + 300 * MB * inside + 20 * MB * entered
    rows = attributed(y, names)
    assert blamed(rows) == {"eval"}
    assert rows["eval"].growth_per_event.value == pytest.approx(20 * MB, rel=0.05)


def test_peaks_that_return_are_never_blamed_for_steady_growth() -> None:
    names = cycles(30, 9, 1)
    inside = np.array([name == "eval" for name in names])
    y = 5000 * MB + 2 * MB * np.arange(len(names)) + 800 * MB * inside
    rows = attributed(y, names)
    assert blamed(rows) == set()
    assert rows["eval"].share < 0.25


def test_a_long_phase_is_not_blamed_for_its_length() -> None:
    names = cycles(20, 19, 1)
    rows = attributed(5000 * MB + 3 * MB * np.arange(len(names)), names)
    assert blamed(rows) == set()
    assert rows["train"].share > 0.9
    assert rows["train"].p_value > 0.05


def test_growth_in_the_long_phase_alone_is_blamed_on_it() -> None:
    names = cycles(40, 6, 4)
    y = 5000 * MB + 3 * MB * np.cumsum([name == "train" for name in names])
    assert blamed(attributed(y, names)) == {"train"}


def test_the_deepest_guilty_phase_is_named() -> None:
    names = (["train/forward"] * 3 + ["train/backward"] * 3 + ["eval"] * 2) * 15
    y = 5000 * MB + 5 * MB * np.cumsum([name == "train/forward" for name in names])
    rows = attributed(y, names)
    assert blamed(rows) == {"train/forward"}
    assert "train" not in rows


def test_growth_spread_over_all_children_is_blamed_on_the_parent() -> None:
    names = (["train/a"] * 2 + ["train/b"] * 2 + ["train/c"] * 2 + ["eval"] * 6) * 15
    y = 5000 * MB + 5 * MB * np.cumsum([name != "eval" for name in names])
    rows = attributed(y, names)
    assert "train" in blamed(rows)
    assert "eval" not in blamed(rows)


def test_two_growing_events_are_no_pattern() -> None:
    names = cycles(2, 49, 1)
    y = 5000 * MB + 20 * MB * np.cumsum([name == "eval" for name in names])
    assert blamed(attributed(y, names)) == set()


def test_an_unfinished_event_counts_for_no_more_than_those_before_it() -> None:
    names = [*cycles(6, 9, 1), *["train"] * 9, "eval"]
    y = 5000 * MB + 20 * MB * np.cumsum([name == "eval" for name in names])
    y[-1] += 900 * MB
    rows = attributed(y, names)
    assert rows["eval"].growth_per_event.value == pytest.approx(20 * MB)


def test_scaling_and_shifting_memory_changes_no_share_and_no_p_value() -> None:
    names = cycles(10, 7, 2)
    rng = np.random.default_rng(3)
    y = np.cumsum([name == "eval" for name in names]) + rng.normal(0, 0.05, len(names))
    one, other = attributed(y, names), attributed(1e6 * y + 7e9, names)
    for name in one:
        assert one[name].share == pytest.approx(other[name].share, rel=1e-6)
        assert one[name].p_value == other[name].p_value


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_little_to_say_anything_gives_no_rows(count: int) -> None:
    assert attributed(np.arange(count, dtype=float), ["eval"] * count) == {}


def test_untagged_flat_and_falling_series_give_no_rows() -> None:
    rising = np.arange(30, dtype=float)
    assert attributed(rising, [""] * 30) == {}
    assert attributed(np.full(30, 5.0), cycles(3, 9, 1)) == {}
    assert attributed(-rising, cycles(3, 9, 1)) == {}


def test_growth_outside_every_phase_is_charged_to_none() -> None:
    names = (["eval"] + [""] * 9) * 12 + ["eval"]
    y = 5000 * MB + 4 * MB * np.cumsum([name == "" for name in names])
    rows = attributed(y, names)
    assert blamed(rows) == set()
    assert rows["eval"].share < 0.05


def test_under_noise_of_an_events_size_the_right_phase_is_named_and_no_other() -> None:
    names = cycles(40, 9, 3)
    inside = np.array([name == "eval" for name in names])
    kept = np.cumsum(np.diff(np.r_[0, inside.astype(int)]) == 1)
    said = []
    for seed in range(20):
        noise = np.random.default_rng([1, seed]).normal(0, 0.7, len(names))
        said.append(blamed(attributed(1000 + kept + noise, names)))
    assert said.count({"eval"}) >= 18
    assert all("train" not in phases for phases in said)


def test_under_noise_steady_growth_blames_nobody() -> None:
    names = cycles(40, 9, 3)
    steady = 40 * np.arange(len(names)) / len(names)
    for seed in range(30):
        noise = np.random.default_rng([2, seed]).normal(0, 0.7, len(names))
        assert blamed(attributed(1000 + steady + noise, names)) == set()


def test_events_of_all_phases_that_add_the_same_are_told_as_one_amount() -> None:
    alike = attribute(BURN_X, BURN_Y, tags(BURN_TAGS)).recurring
    assert alike is not None
    assert set(alike.phases) == {"Predict", "Correct"}
    assert alike.events == 5
    assert 1440 * MB <= alike.least <= alike.growth_per_event <= alike.most <= 1472 * MB
    assert alike.spread < 0.02


def test_no_shared_amount_is_told_where_one_phase_is_guilty_or_events_differ() -> None:
    names = cycles(12, 9, 1)
    guilty = 5000 * MB + 20 * MB * np.cumsum([name == "eval" for name in names])
    assert attribute(np.arange(120.0), guilty, tags(names)).recurring is None
    random = np.random.default_rng(1)
    uneven = 5000 * MB + np.cumsum(random.exponential(20 * MB, len(names)))
    assert attribute(np.arange(120.0), uneven, tags(names)).recurring is None


def test_a_sawtooth_that_keeps_step_with_the_phases_blames_nobody() -> None:
    names = cycles(40, 9, 3)
    k = np.arange(len(names))
    for seed in range(10):
        noise = np.random.default_rng([3, seed]).normal(0, 1.0, len(names))
        rising = 30 * ((k - 9) % 12) / 12
        assert blamed(attributed(1000 + k + rising + noise, names)) == set()


def test_a_high_water_mark_blames_the_phase_that_raises_it() -> None:
    names = cycles(30, 19, 1)
    kept = 10.0 * np.cumsum([name == "eval" for name in names])
    said = []
    for seed in range(10):
        noise = np.random.default_rng([4, seed]).normal(0, 2.0, len(names))
        said.append(blamed(attributed(np.maximum.accumulate(1000 + kept + noise), names)))
    assert said.count({"eval"}) >= 9


def test_an_interval_of_growth_per_event_holds_the_truth() -> None:
    names = cycles(40, 9, 3)
    inside = np.array([name == "eval" for name in names])
    kept = 5.0 * np.cumsum(np.diff(np.r_[0, inside.astype(int)]) == 1)
    held = []
    for seed in range(20):
        noise = np.random.default_rng([5, seed]).normal(0, 2.0, len(names))
        growth = attributed(1000 + kept + noise, names)["eval"].growth_per_event
        held.append(growth.low <= 5.0 <= growth.high)
    assert sum(held) >= 18


def test_a_phase_that_holds_a_batch_and_keeps_a_part_half_way_through_is_blamed() -> None:
    names = cycles(30, 14, 6)
    inside = np.array([name == "eval" for name in names])
    kept = np.cumsum(np.arange(len(names)) % 20 == 17)
    for seed in range(5):
        noise = np.random.default_rng([7, seed]).normal(0, 0.1, len(names))
        assert blamed(attributed(1000 + kept + 10 * inside + noise, names)) == {"eval"}


def test_events_of_different_lengths_that_keep_the_same_are_blamed() -> None:
    told = 0
    for seed in range(10):
        random = np.random.default_rng([8, seed])
        names: list[str] = []
        steps: list[float] = []
        for _ in range(30):
            train, rest = random.integers(8, 40), random.integers(4, 20)
            names += ["train"] * train + ["eval"] * rest
            steps += [1 / train] * train + [0.0] * rest
        y = 1000 + np.cumsum(steps) + random.normal(0, 0.1, len(names))
        told += blamed(attributed(y, names)) == {"train"}
    assert told >= 9


def test_phases_of_which_none_recurs_give_no_rows() -> None:
    assert attributed(np.arange(30.0) * MB, ["train"] * 30) == {}
    assert attributed(np.arange(30.0) * MB, ["load"] * 10 + ["train"] * 20) == {}


def test_one_guilty_phase_of_many_is_named_among_those_that_are_looked_at() -> None:
    names = [f"part {i // 3 % 40}" for i in range(12000)]
    ends = [i % 120 == 11 for i in range(12000)]  # each end of "part 3"
    y = 5000 * MB + 2 * MB * np.cumsum(ends)
    rows = attributed(y + np.random.default_rng(3).normal(0, 0.3 * MB, len(y)), names)
    assert blamed(rows) == {"part 3"}
    assert len(rows) <= MOST_PHASES
