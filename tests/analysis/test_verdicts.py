"""What memdiag says of whole series: each shape that the method knows, and what it must not say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from memory_series import judge, noisy, series_of

from memdiag.values.measurements import AxisKind, Limit, Role, Series, Unit
from memdiag.values.verdict import Reason, Verdict

MB = 1e6
STABLE_OR_WARMUP = {Verdict.STABLE, Verdict.WARMUP}


def verdict(y: np.ndarray, x: np.ndarray | None = None, **more: object) -> Verdict:
    return judge(series_of(y, x, **more)).verdict


def test_flat_noise_is_stable() -> None:
    assert verdict(noisy(np.full(300, 500 * MB))) is Verdict.STABLE


def test_plateau_after_growth_is_warmup_and_says_since_when() -> None:
    y = 500 * MB + 3 * MB * np.minimum(np.arange(400.0), 100)
    found = judge(series_of(noisy(y))).series[0]
    assert found.verdict is Verdict.WARMUP
    assert found.plateau is not None
    assert 90 <= found.plateau.since_x.value <= 110


def test_growth_longer_than_warmups_last_is_leak_with_its_rate() -> None:
    y = 500 * MB + 0.2 * MB * np.arange(3000.0)
    found = judge(series_of(noisy(y))).series[0]
    assert found.verdict is Verdict.LEAK
    assert found.growth_per_x is not None
    assert found.growth_per_x.low <= 0.2 * MB <= found.growth_per_x.high


@pytest.mark.parametrize("readings", [(1.2, 1.5, 2.2, 4.8, 8.9, 14), (3, 5, 12, 40, 81)])
def test_few_readings_that_rise_ever_faster_are_not_stable(readings: tuple[float, ...]) -> None:
    assert verdict(np.array(readings) * 1000 * MB) not in STABLE_OR_WARMUP


def test_growth_that_restarts_after_a_plateau_is_leak_with_its_onset() -> None:
    y = 500 * MB + 2 * MB * np.maximum(np.arange(400.0) - 250, 0)
    found = judge(series_of(noisy(y))).series[0]
    assert (found.verdict, found.reason) == (Verdict.LEAK, Reason.GROWTH_AFTER_PLATEAU)
    assert found.onset_x is not None
    assert 235 <= found.onset_x.value <= 265


def test_ramp_no_longer_than_a_warmup_is_inconclusive_and_says_how_much_longer() -> None:
    found = judge(series_of(noisy(2e9 + 50 * MB * np.arange(60.0)))).series[0]
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.need_more is not None
    assert found.need_more.more_x is not None
    assert found.need_more.more_x > 0


def test_growth_for_seconds_has_to_be_recorded_for_the_minutes_that_warmups_last() -> None:
    x = np.arange(0, 18, 0.1)
    found = judge(series_of(noisy(2e8 + 30 * MB * x), x, kind=AxisKind.SECONDS)).series[0]
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.STILL_CLIMBING)
    assert found.need_more is not None
    assert found.need_more.more_x is not None
    assert found.need_more.more_x > 600


def test_the_same_points_are_a_leak_a_million_calls_apart() -> None:
    y = noisy(8e8 + 32 * MB * np.arange(18.0), share=1e-4)
    assert verdict(y, np.arange(18.0)) is Verdict.INCONCLUSIVE
    assert verdict(y, 1e6 * np.arange(18.0)) is Verdict.LEAK


def test_few_epochs_tell_what_as_many_steps_do_not() -> None:
    y = 7.6e8 + 311 * MB * np.arange(19.0)
    assert verdict(y, kind=AxisKind.EPOCH) is Verdict.LEAK
    assert verdict(y, kind=AxisKind.STEP) is Verdict.INCONCLUSIVE


def test_sawtooth_on_a_flat_floor_is_bounded() -> None:
    y = 500 * MB + 5 * MB * (np.arange(1000) % 37)
    found = judge(series_of(noisy(y))).series[0]
    assert found.verdict is Verdict.STABLE
    assert found.reason is Reason.BOUNDED_CYCLES


def test_sawtooth_on_a_rising_floor_is_leak() -> None:
    k = np.arange(4000.0)
    assert verdict(noisy(500 * MB + 5 * MB * (k % 37) + 0.05 * MB * k)) is Verdict.LEAK


def test_spikes_of_an_evaluation_do_not_hide_a_leak() -> None:
    k = np.arange(3000.0)
    y = 500 * MB + 0.1 * MB * k + 300 * MB * (k % 100 > 92)
    assert verdict(noisy(y)) is Verdict.LEAK


def test_staircase_that_goes_on_is_leak_and_one_that_stopped_is_warmup() -> None:
    k = np.arange(4000.0)
    assert verdict(500 * MB + 20 * MB * np.floor(k / 250)) is Verdict.LEAK
    assert verdict(500 * MB + 20 * MB * np.floor(np.minimum(k, 1500) / 250)) is Verdict.WARMUP


def test_saturating_growth_is_warmup() -> None:
    y = 2e9 - 1e9 * np.exp(-np.arange(1000.0) / 60)
    assert verdict(noisy(y)) is Verdict.WARMUP


def test_a_lone_outlier_changes_nothing() -> None:
    y = noisy(np.full(500, 500 * MB))
    y[200] *= 9
    assert verdict(y) in STABLE_OR_WARMUP


def test_thirteen_bytes_a_step_are_negligible_and_720_a_request_are_not() -> None:
    losses = 3e8 + 13.0 * np.arange(3000)
    found = judge(series_of(losses, role=Role.IN_USE)).series[0]
    assert (found.verdict, found.reason) == (Verdict.STABLE, Reason.NEGLIGIBLE)
    requests = 11.4e6 + 720.0 * np.arange(40)
    assert verdict(requests, role=Role.IN_USE, kind=AxisKind.REQUEST) is Verdict.LEAK


def test_uncollected_heap_is_not_called_a_leak() -> None:
    y = noisy(11e6 + 16_400.0 * np.arange(40), share=1e-5)
    found = judge(series_of(y, role=Role.COLLECTED_HEAP, kind=AxisKind.INDEX)).series[0]
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.NOT_COLLECTED)


def test_available_memory_counts_downwards() -> None:
    y = noisy(64e9 - 2 * MB * np.arange(3000.0), share=1e-4)
    assert verdict(y, falling=True, role=Role.HOST) is Verdict.LEAK
    assert verdict(y, role=Role.HOST) is Verdict.STABLE


def test_peak_of_available_memory_is_its_lowest_and_sizes_no_card() -> None:
    y = noisy(np.full(3000, 15e9))
    found = judge(series_of(y, falling=True, role=Role.DEVICE))
    (finding,) = found.series
    assert finding.falling
    assert finding.peak_value <= finding.latest_value
    assert found.capacity == ()


def test_what_a_constant_sawtooth_has_in_common_are_its_floors() -> None:
    (found,) = judge(series_of(5e8 + 1e6 * (np.arange(300) % 9.0))).series
    assert "lowest readings of its cycles are the same" in found.trail[-1].text
    (found,) = judge(series_of(np.full(300, 5e8))).series
    assert found.trail[-1].text == "all {readings} readings are the same"


def test_restart_is_set_apart_and_the_last_run_judged() -> None:
    y = np.concatenate([5e8 + 20 * MB * np.arange(50.0), noisy(np.full(200, 6e8))])
    generation = np.repeat([0, 1], [50, 200])
    found = judge(series_of(y, generation=generation)).series[0]
    assert (found.verdict, found.restarts, found.samples) == (Verdict.STABLE, 1, 200)


def test_tear_down_at_the_end_belongs_to_no_regime() -> None:
    y = noisy(500 * MB + 0.2 * MB * np.arange(3000.0))
    y[-60:] = 100 * MB
    found = judge(series_of(y)).series[0]
    assert found.verdict is Verdict.LEAK
    assert found.dropped_end == 60


def test_tear_down_in_several_steps_is_no_plateau() -> None:
    y = np.concatenate([np.linspace(5e7, 3.6e8, 45), np.full(180, 3.6e8), [2.7e8, 1.6e8]])
    found = judge(series_of(noisy(y, share=1e-5))).series[0]
    assert (found.verdict, found.dropped_end) == (Verdict.WARMUP, 2)
    assert found.plateau is not None
    assert found.plateau.since_x.value == pytest.approx(45, abs=5)
    assert found.plateau.low_value == pytest.approx(3.6e8, rel=0.01)
    assert found.latest_value == pytest.approx(3.6e8, rel=0.01)


def test_several_samples_a_step_are_judged_on_the_steps_floor() -> None:
    step = np.repeat(np.arange(500.0), 6)
    y = noisy(np.full(3000, 500 * MB))
    y[3::6] += 200 * MB
    found = judge(series_of(y, step)).series[0]
    assert found.verdict is Verdict.STABLE
    assert found.samples == 3000
    assert found.peak_value == y.max()
    assert max(value for _, value in found.trace) < 600 * MB
    assert max(value for _, value in found.tops) == y.max()


def test_what_is_read_after_the_last_step_is_no_regime_and_not_stable() -> None:
    """Workers that leave, a model that is saved: thirty readings, all of them at step 500."""
    step = np.concatenate([np.arange(500.0), np.full(30, 500.0)])
    y = noisy(np.full(530, 500 * MB), share=1e-5)
    y[400:] += 3 * MB
    y[-25:] -= 6 * MB
    y[-12] = 900 * MB
    found = judge(series_of(y, step)).series[0]
    assert found.verdict is Verdict.STABLE
    assert found.latest_value == pytest.approx(503 * MB, rel=1e-3)
    assert found.peak_value == 900 * MB
    growth = found.growth_per_x
    assert growth is not None
    assert growth.high - growth.low < 0.1 * MB

    leaking = y + 0.2 * MB * np.arange(530)
    leaking[-25:] = 100 * MB
    assert judge(series_of(leaking, step)).series[0].verdict is Verdict.LEAK


def test_a_plateau_is_as_long_as_its_way_however_few_readings_it_has() -> None:
    """Readings that cost time are dense at the start and rare later: the last tenth of them cover
    two fifths of the run."""
    x = np.concatenate([np.arange(1, 160), np.arange(160, 1800, 40), np.arange(1800, 3000, 60)])
    filling = 118e6 + 2500.0 * np.minimum(x, 1800)
    found = judge(series_of(filling, x, role=Role.IN_USE, metric="malloc_bytes")).series[0]
    assert found.verdict is Verdict.WARMUP
    assert found.plateau is not None
    assert found.plateau.since_x.value == pytest.approx(1800, abs=60)
    leaking = series_of(118e6 + 2500.0 * x, x, role=Role.IN_USE, metric="malloc_bytes")
    assert judge(leaking).verdict is Verdict.LEAK


def test_few_pages_are_no_leak_however_straight_their_line() -> None:
    """A process touches what it has for the first time: 60 KB of 250 MB in 300 steps."""
    found = judge(series_of(250e6 + 200.0 * np.arange(300))).series[0]
    assert found.verdict is Verdict.STABLE
    open_still = judge(series_of(150e6 + 1000.0 * np.arange(600))).series[0]
    assert (open_still.verdict, open_still.reason) == (Verdict.INCONCLUSIVE, Reason.FEW_PAGES)
    assert open_still.need_more is not None
    longer = 600 + int(open_still.need_more.more_x or 0)
    assert judge(series_of(150e6 + 1000.0 * np.arange(longer))).series[0].verdict is Verdict.LEAK
    exact = series_of(250e6 + 1000.0 * np.arange(300), role=Role.IN_USE, metric="malloc_bytes")
    assert judge(exact).series[0].verdict is Verdict.LEAK


def test_address_space_is_no_meter() -> None:
    y = noisy(4e9 + 10 * MB * np.arange(3000.0))
    found = judge(series_of(y, role=Role.VIRTUAL)).series[0]
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.NOT_MEMORY)


def test_resident_growth_over_flat_private_memory_is_overruled() -> None:
    k = np.arange(3000.0)
    resident = series_of(noisy(2e8 + 0.2 * MB * k))
    private = series_of(noisy(np.full(3000, 6e7)), role=Role.UNIQUE, metric="uss_bytes")
    found = judge(resident, private)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.series[0].reason is Reason.OVERRULED


def test_one_leaking_process_makes_the_recording_a_leak() -> None:
    leak = series_of(noisy(2e8 + 0.2 * MB * np.arange(3000.0)), process="rank1")
    stable = series_of(noisy(np.full(3000, 2e8)), process="rank0")
    found = judge(stable, leak)
    assert found.verdict is Verdict.LEAK
    assert found.deciding is not None
    assert found.deciding.process == "rank1"


def test_tensor_count_speaks_to_growing_memory() -> None:
    memory = series_of(noisy(2e8 + 0.2 * MB * np.arange(3000.0)))
    tensors = series_of(np.full(3000, 6529.0), role=Role.TENSORS, metric="tensors", unit=Unit.COUNT)
    kinds = [e.kind.value for e in judge(memory, tensors).evidence]
    assert kinds == ["tensors_flat"]


def test_limit_ahead_of_a_leak_is_told() -> None:
    y = 500 * MB + 0.2 * MB * np.arange(3000.0)
    limit = Limit(name="--limit", value_bytes=2 * 10**9, roles=frozenset({Role.RESIDENT}))
    hits = judge(series_of(noisy(y)), limits=(limit,)).series[0].limit_hits
    assert len(hits) == 1
    assert hits[0].at_x.low <= 7500 <= hits[0].at_x.high


def test_series_without_readings_are_named_and_left_out() -> None:
    found = judge(series_of(np.full(10, np.nan)), series_of(np.full(10, 5.0), metric="uss_bytes"))
    assert [f.metric for f in found.series] == ["uss_bytes"]
    assert any("rss_bytes" in note for note in found.notes)


@pytest.mark.parametrize(
    "y",
    [[], [math.nan], [5.0], [5.0, 6.0], [math.inf, -math.inf, 3.0], [5.0, math.nan, 7.0]],
    ids=["nothing", "missing", "one", "two", "infinite", "two of three"],
)
def test_too_little_is_never_more_than_inconclusive(y: list[float]) -> None:
    found = judge(series_of(y))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert not found.series or found.series[0].reason is Reason.TOO_FEW_SAMPLES


def test_few_samples_are_never_surer_than_ninety_nine_percent() -> None:
    for n in range(4, 20):
        assert judge(series_of(np.full(n, 5e8))).confidence <= 0.99


def test_a_rise_that_only_comes_back_from_a_dip_is_no_leak() -> None:
    level = np.r_[np.full(20, 5000.0), np.linspace(4990, 5002, 40)] * MB
    noise = np.random.default_rng(4).normal(0, 0.5 * MB, len(level))
    assert verdict(level + noise, 50.0 * np.arange(60)) is not Verdict.LEAK


def test_the_end_of_a_great_climb_is_no_leak_though_it_rises_beyond_its_noise() -> None:
    said = []
    for seed in range(20):
        x = 50.0 * np.arange(200)
        y = 4000 * MB - 800 * MB * np.exp(-x / 900)
        said.append(verdict(y + np.random.default_rng(seed).normal(0, 3 * MB, 200), x))
    assert Verdict.LEAK not in said


def test_a_slight_leak_behind_a_great_climb_is_found_where_it_is_far_beyond_its_noise() -> None:
    k = np.arange(1000.0)
    y = 1000 * MB + 3000 * MB * np.minimum(k / 100, 1) + 0.05 * MB * np.maximum(k - 100, 0)
    assert verdict(noisy(y, 0.0002), 10 * k) is Verdict.LEAK


def test_a_run_that_climbs_as_a_whole_is_not_stable_for_its_last_tread() -> None:
    steps = 10.0 * np.arange(2000)
    y = 5.68e9 + 20 * MB * np.searchsorted([600.0, 7000.0, 13500.0], steps)
    assert verdict(y, steps) is Verdict.INCONCLUSIVE


def test_steps_that_ended_long_ago_leave_a_run_stable() -> None:
    steps = 10.0 * np.arange(2000)
    y = 5.68e9 + 20 * MB * np.searchsorted([600.0, 1200.0, 1900.0], steps)
    assert verdict(y, steps) in STABLE_OR_WARMUP


def test_a_step_at_the_very_end_belongs_to_its_staircase() -> None:
    steps = 1.5 * np.arange(2000)
    y = 3.64e9 + 20 * MB * np.searchsorted([1470.0, 1960.0, 2480.0, 2970.0], steps)
    assert verdict(y, steps) is Verdict.LEAK
    assert verdict(y[:1975], steps[:1975]) not in STABLE_OR_WARMUP


def test_the_start_of_a_program_is_no_warm_up() -> None:
    """An interpreter that imports for half a second and is watched for another one."""
    start = [4e6, 9e6, 14e6, 14.2e6, *[14.2e6 + 4096 * (i % 2) for i in range(8)]]
    seconds = np.arange(len(start)) / 10
    (brief,) = judge(series_of(start, seconds, kind=AxisKind.SECONDS)).series
    assert (brief.verdict, brief.reason) == (Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES)
    (steps,) = judge(series_of(start)).series
    assert steps.reason is not Reason.TOO_FEW_SAMPLES


def test_a_small_fall_at_the_end_does_not_make_the_plateau_young() -> None:
    y = np.concatenate((np.linspace(300e6, 330e6, 60), np.full(330, 332e6), np.full(10, 331e6)))
    plateau = judge(series_of(y)).series[0].plateau
    assert plateau is not None
    assert 55 <= plateau.since_x.value <= 65


def test_a_cache_that_was_full_between_the_last_two_readings_is_no_leak() -> None:
    x = np.concatenate(
        [np.arange(1.0, 60), np.arange(60.0, 780, 30), [937, 1094, 1314, 1544, 2747]]
    )
    cache = series_of(
        118e6 + 2770 * np.minimum(x, 2000), x, role=Role.IN_USE, metric="malloc_bytes"
    )
    assert judge(cache).series[0].verdict is Verdict.INCONCLUSIVE
    leak = series_of(118e6 + 2770 * x, x, role=Role.IN_USE, metric="malloc_bytes")
    assert judge(leak).series[0].verdict is Verdict.LEAK


def _rare_at_the_end() -> Series:
    """Dense readings of a level, then rare ones of a leak that takes two thirds of the way."""
    x = np.concatenate([np.arange(2000.0), 2000 + 250.0 * np.arange(1, 17)])
    y = 2e9 + np.where(x > 2000, 2e5 * (x - 2000), 0)
    return series_of(y + np.random.default_rng(0).normal(0, 1e6, x.size), x)


def _steep_at_the_end() -> Series:
    y = noisy(np.full(1000, 1e9))
    y[-10:] += 50e6 * np.arange(10)
    return series_of(y)


@pytest.mark.parametrize("series", [_rare_at_the_end(), _steep_at_the_end()], ids=["rare", "steep"])
def test_the_end_of_a_run_is_short_and_low_or_a_doubt(series: Series) -> None:
    assert judge(series).series[0].verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("last", [80e3, 400e3, -400e3])
def test_the_last_readings_make_no_doubt_of_a_stable_run(last: float) -> None:
    y = 15e6 + 4096.0 * np.repeat(np.arange(4), 75)
    y[150:] = y[150]
    y[-1] += last
    assert judge(series_of(y)).series[0].verdict in {Verdict.STABLE, Verdict.WARMUP}


@pytest.mark.parametrize(("rate", "steps"), [(600, 1500), (2000, 450), (4000, 225)])
def test_few_pages_of_a_large_process_are_a_doubt_from_a_quarter_of_a_megabyte_on(
    rate: int, steps: int
) -> None:
    y = 2e9 + rate * np.arange(steps) + np.random.default_rng(0).normal(0, 600, steps)
    found = judge(series_of(np.round(y / 4096) * 4096)).series[0]
    assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.FEW_PAGES)


def test_peaks_within_steps_that_rise_are_warned_of() -> None:
    at = np.arange(1000)
    y = 1e9 + np.where(at % 4 == 2, at * 1e6, 0.0)
    found = judge(series_of(y, at // 4)).series[0]
    assert (found.verdict, found.peaks_grow) == (Verdict.STABLE, True)


def test_what_lingers_after_the_last_step_is_no_part_of_the_pace() -> None:
    steps = np.concatenate([np.arange(300.0), np.full(600, 300.0)])
    y = 5e8 + 1e6 * np.minimum(steps, 300)
    found = judge(series_of(y, steps, at_s=0.1 * np.arange(900))).series[0]
    assert found.verdict is Verdict.LEAK
    assert found.growth_per_s is not None
    assert found.growth_per_s.value == pytest.approx(1e7, rel=0.02)
