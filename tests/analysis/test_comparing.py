"""What a change did, on runs whose truth is known."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from memory_series import judge, noisy, series_of

from memdiag.analysis.comparison.compare import compare
from memdiag.analysis.diagnose import diagnose
from memdiag.analysis.stats import pooled_estimate
from memdiag.analysis.stats.pooled_estimate import Estimate
from memdiag.values.comparison import Comparison, Effect, Measure, Why
from memdiag.values.findings import RecordingFinding
from memdiag.values.measurements import Axis, AxisKind, Recording, Role, Series, Unit
from memdiag.values.verdict import Verdict

MB = 1e6


def bench() -> ModuleType:
    """benchmarks/comparing.py, where the generator lives."""
    path = Path(__file__).parents[2] / "benchmarks" / "comparing.py"
    spec = importlib.util.spec_from_file_location("comparing_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def series(
    *,
    steps: int = 800,
    rate: float = 0.0,
    onset: int = 0,
    level: float = 4000.0,
    noise: float = 4.0,
    seed: int = 0,
    metric: str = "rss_bytes",
    process: str = "",
    axis: AxisKind = AxisKind.STEP,
    start: float = 0.0,
) -> Series:
    """A series in MB: level, a line from `onset` on, white noise."""
    rng = np.random.default_rng(seed)
    x = np.arange(0, steps, 2, dtype=float)
    y = level + rate * np.clip(x - onset, 0, None) + rng.normal(0, noise, len(x))
    return Series(
        metric=metric,
        column=metric,
        role=Role.RESIDENT,
        unit=Unit.BYTES,
        axis=Axis(name=axis.value, kind=axis),
        process=process,
        x=x + start,
        y=y * MB,
    )


def run(*all_series: Series, source: str = "run.csv") -> RecordingFinding:
    return diagnose(Recording(source=source, series=all_series))


def effect(compared: Comparison, metric: str) -> Effect:
    return next(s.effect for s in compared.series if s.metric == metric)


# ---- one run a side --------------------------------------------------------------------------


def test_leak_that_is_gone_is_fixed_with_its_old_rate() -> None:
    found = compare([run(series(rate=5))], [run(series(seed=1))])
    assert found.effect is Effect.FIXED
    assert found.deciding is not None
    growth = found.deciding.deciding
    assert growth is not None
    assert growth.measure is Measure.GROWTH
    assert growth.base.low <= 5 * MB <= growth.base.high
    assert growth.change.high < 0


def test_leak_that_is_new_is_a_new_leak() -> None:
    assert compare([run(series())], [run(series(rate=5, seed=1))]).effect is Effect.NEW_LEAK


@pytest.mark.parametrize(
    ("rate", "expected"), [(2.5, Effect.IMPROVED), (5.0, Effect.NO_EFFECT), (9.0, Effect.WORSE)]
)
def test_rate_of_a_leak_decides_between_better_equal_and_worse(
    rate: float, expected: Effect
) -> None:
    found = compare([run(series(rate=5))], [run(series(rate=rate, seed=1))])
    assert found.effect is expected


def test_no_effect_says_what_would_have_shown() -> None:
    found = compare([run(series(rate=5))], [run(series(rate=5, seed=1))]).deciding
    assert found is not None
    assert found.deciding is not None
    assert 0 < found.deciding.smallest_effect < 5 * MB / 3


@pytest.mark.parametrize(
    ("level", "expected"),
    [(2000.0, Effect.IMPROVED), (4010.0, Effect.NO_EFFECT), (8000.0, Effect.WORSE)],
)
def test_level_decides_where_neither_leaks(level: float, expected: Effect) -> None:
    found = compare([run(series())], [run(series(level=level, seed=1))])
    assert found.effect is expected


def test_peak_decides_where_the_plateau_is_the_same() -> None:
    spiky = series(seed=1)
    y = spiky.y.copy()
    y[200] *= 3
    found = compare([run(series())], [run(replace(spiky, y=y))])
    assert found.effect is Effect.WORSE
    assert found.deciding is not None
    assert found.deciding.why is Why.PEAK_CHANGED


def test_candidate_that_ends_before_the_leak_began_proves_nothing() -> None:
    base = run(series(rate=5, onset=400, steps=1600))
    found = compare([base], [run(series(steps=300, seed=1))])
    assert found.effect is Effect.INCONCLUSIVE
    assert found.deciding is not None
    assert found.deciding.why is Why.CANDIDATE_TOO_SHORT
    assert found.deciding.need_more_x is not None
    assert 100 <= found.deciding.need_more_x <= 200


def test_base_that_ends_before_the_leak_began_makes_it_no_news() -> None:
    candidate = run(series(rate=5, onset=400, steps=1600))
    found = compare([run(series(steps=300, seed=1))], [candidate])
    assert found.effect is Effect.INCONCLUSIVE
    assert found.deciding is not None
    assert found.deciding.why is Why.BASE_TOO_SHORT


def test_candidate_too_short_to_judge_is_still_seen_to_rise_less() -> None:
    base = run(series(rate=20))
    candidate = run(series(rate=6, steps=40, level=1000, seed=1))
    assert candidate.verdict is Verdict.INCONCLUSIVE
    found = compare([base], [candidate])
    assert found.effect is Effect.IMPROVED
    assert found.deciding is not None
    assert found.deciding.why is Why.SLOWER_SO_FAR


def test_noise_that_would_hide_a_real_change_is_no_answer() -> None:
    base = run(series(rate=5, noise=4))
    candidate = run(series(rate=5, noise=4, seed=1))
    growth = base.series[0].growth_per_x
    assert growth is not None
    wide = replace(growth, low=growth.value - 4 * MB, high=growth.value + 4 * MB)
    noisy = replace(base, series=(replace(base.series[0], growth_per_x=wide),))
    found = compare([noisy], [candidate])
    assert found.effect is Effect.INCONCLUSIVE
    assert found.deciding is not None
    assert found.deciding.why is Why.TOO_NOISY
    assert found.deciding.need_more_x is not None


def test_seconds_are_aligned_at_their_start_and_steps_are_not() -> None:
    early = series(rate=5, axis=AxisKind.SECONDS)
    late = series(rate=5, axis=AxisKind.SECONDS, start=1e9, seed=1)
    seconds = compare([run(early)], [run(late)]).deciding
    assert seconds is not None
    assert seconds.common_x == (0, 798)
    steps = compare([run(series())], [run(series(start=500, seed=1))]).deciding
    assert steps is not None
    assert steps.common_x == (500, 798)


def test_axes_that_differ_are_not_compared() -> None:
    found = compare([run(series(rate=5))], [run(series(rate=5, axis=AxisKind.SECONDS))])
    assert found.effect is Effect.INCONCLUSIVE
    assert found.deciding is not None
    assert found.deciding.why is Why.AXES_DIFFER


def test_nothing_in_common_is_no_answer() -> None:
    found = compare([run(series())], [run(series(metric="vram_bytes"))])
    assert (found.effect, found.series, found.decided_by) == (Effect.INCONCLUSIVE, (), None)
    assert found.notes == (
        "only the base has rss_bytes",
        "only the candidate has vram_bytes",
    )


# ---- several series --------------------------------------------------------------------------


def test_pids_do_not_count_and_ranks_do() -> None:
    def processes(pid: int, rate: float) -> RecordingFinding:
        ranks = [series(process=f"rank {n}", rate=rate * n, seed=n) for n in (0, 1)]
        return run(*ranks, series(process=f"loader {pid}", seed=3))

    found = compare([processes(10, 5)], [processes(77, 5)])
    assert [s.process for s in found.series] == ["rank 0", "rank 1", "loader"]
    assert [s.effect for s in found.series] == [Effect.NO_EFFECT] * 3


def test_fix_that_moves_the_leak_elsewhere_is_a_new_leak() -> None:
    base = run(series(rate=5), series(metric="vram_bytes", seed=2))
    candidate = run(series(seed=1), series(metric="vram_bytes", rate=5, seed=3))
    found = compare([base], [candidate])
    assert effect(found, "rss_bytes") is Effect.FIXED
    assert effect(found, "vram_bytes") is Effect.NEW_LEAK
    assert found.effect is Effect.NEW_LEAK


# ---- several runs ----------------------------------------------------------------------------


def test_several_runs_narrow_what_would_have_shown() -> None:
    def smallest(runs: int) -> float:
        base = [run(series(rate=5, seed=n)) for n in range(runs)]
        found = compare(base, [run(series(rate=5, seed=50 + n)) for n in range(runs)]).deciding
        assert found is not None
        assert found.deciding is not None
        return found.deciding.smallest_effect

    assert smallest(4) < smallest(2) < smallest(1)


def test_runs_that_differ_among_themselves_ask_for_more_runs() -> None:
    base = [run(series(rate=rate, seed=n)) for n, rate in enumerate((2, 6, 14))]
    candidate = [run(series(rate=rate, seed=9 + n)) for n, rate in enumerate((3, 5, 13))]
    found = compare(base, candidate).deciding
    assert found is not None
    assert (found.effect, found.more_runs) == (Effect.INCONCLUSIVE, True)


def test_a_leak_in_one_run_of_a_side_is_a_leak() -> None:
    base = [run(series(rate=5, seed=n)) for n in range(2)]
    candidate = [run(series(seed=5)), run(series(rate=5, seed=6))]
    assert compare(base, candidate).effect is not Effect.FIXED


def opened(found: RecordingFinding) -> RecordingFinding:
    """The same run, on which its own diagnosis could not decide."""
    undecided = (replace(one, verdict=Verdict.INCONCLUSIVE) for one in found.series)
    return replace(found, series=tuple(undecided))


def test_one_open_run_among_stable_ones_leaves_a_side_stable_unless_it_grew() -> None:
    base = [run(series(rate=5, seed=n)) for n in range(3)]
    stable = [run(series(seed=10 + n)) for n in range(2)]
    assert compare(base, [*stable, opened(run(series(seed=20)))]).effect is Effect.FIXED
    assert compare(base, [*stable, opened(run(series(rate=1, seed=20)))]).effect is not Effect.FIXED
    assert compare(base, [stable[0], opened(stable[1])]).effect is not Effect.FIXED


def test_a_leak_is_new_where_an_open_base_did_not_grow() -> None:
    leak = [run(series(rate=5, seed=1))]
    assert compare([opened(run(series()))], leak).effect is Effect.NEW_LEAK
    assert compare([opened(run(series(rate=1)))], leak).effect is Effect.WORSE
    assert compare([opened(run(series(noise=400)))], leak).effect is not Effect.NEW_LEAK


def test_a_run_that_settled_is_not_worse_than_one_that_is_open() -> None:
    """The start of a leak against a warm-up that is over: over the same steps, it rose more."""
    start = opened(run(series(steps=80, rate=2, noise=0.1)))
    y = 800 + 900 * (1 - np.exp(-np.arange(800) / 5)) + np.random.default_rng(1).normal(0, 0.1, 800)
    warm = diagnose(Recording(source="test", series=(series_of(y * MB, np.arange(800.0)),)))
    assert warm.verdict is Verdict.WARMUP
    assert compare([start], [warm]).series[0].why is Why.BASE_UNSETTLED
    assert compare([warm], [start]).series[0].why is Why.CANDIDATE_UNSETTLED


def test_pool_of_one_run_keeps_its_value_and_admits_that_runs_differ() -> None:
    pooled = pooled_estimate.pool([Estimate(value=100.0, error=0.0)])
    assert pooled is not None
    assert (pooled.value, pooled.error) == (100.0, pytest.approx(pooled_estimate.RUN_TO_RUN * 100))


@pytest.mark.parametrize(("scatter", "share"), [(3.0, 0.95), (8.0, 0.88)])
def test_pool_covers_the_mean_of_runs_that_scatter(scatter: float, share: float) -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        values = 100 + rng.normal(0, scatter, 4)
        pooled = pooled_estimate.pool([Estimate(value=float(v), error=1.0) for v in values])
        assert pooled is not None
        interval = pooled.interval()
        covered += interval.low <= 100 <= interval.high
    assert covered >= share * 400


def test_pool_of_nothing_is_nothing() -> None:
    assert pooled_estimate.pool([]) is None


def test_ratio_is_unknown_where_the_base_may_be_zero() -> None:
    candidate = Estimate(value=5.0, error=0.1)
    assert pooled_estimate.ratio(Estimate(value=1.0, error=1.0), candidate) is None
    assert pooled_estimate.ratio(Estimate(value=0.0, error=0.0), candidate) is None


def test_ratio_holds_the_truth_in_19_of_20() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(500):
        base = Estimate(value=float(10 + rng.normal(0, 1)), error=1.0)
        candidate = Estimate(value=float(5 + rng.normal(0, 1)), error=1.0)
        found = pooled_estimate.ratio(base, candidate)
        assert found is not None
        held += found.low <= 0.5 <= found.high
    assert held >= 0.93 * 500


# ---- over many changes -----------------------------------------------------------------------


def test_known_effects_are_named_and_a_halved_rate_is_never_no_effect() -> None:
    module = bench()
    right = total = 0
    for name, found in module.outcomes(seed=7, per_effect=6):
        forbidden: Counter[Effect] = Counter({e: found[e] for e in module.NEVER.get(name, ())})
        assert forbidden.total() == 0, name
        right += found[module.CASES[name][3]]
        total += found.total()
    assert right / total >= 0.9  # 0.95 over many more in benchmarks/comparing.py


def test_a_leak_before_and_a_warm_up_after_is_a_leak_that_is_gone() -> None:
    """Whatever the warm-up rises by: the leak had risen by less when it ended."""
    steps = np.arange(1000.0)
    leak = judge(series_of(noisy(1e9 + 1e5 * steps)))
    for minus in (20, 60, 150):
        warm = judge(series_of(noisy(1e9 + 3e8 * (1 - np.exp(-steps / minus)), seed=1)))
        assert compare([leak], [warm]).effect is Effect.FIXED


def test_a_leak_that_is_gone_comes_before_a_higher_level_of_another_metric() -> None:
    steps = np.arange(1000.0)
    leak, level = noisy(1e9 + 1e6 * steps), noisy(np.full(1000, 1e9), seed=1)
    private = {"role": Role.PROPORTIONAL, "metric": "pss_bytes"}
    before = judge(series_of(leak), series_of(level, process="worker", **private))
    after = judge(series_of(level), series_of(2 * level, process="worker", **private))
    assert compare([before], [after]).effect is Effect.FIXED
