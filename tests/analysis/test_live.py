"""What the live verdict promises."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from memdiag.analysis.live.sequential import MOST_TRACKS, LiveVerdict
from memdiag.values.findings import Finding
from memdiag.values.measurements import AxisKind, Sample
from memdiag.values.verdict import Verdict

GB = 1e9


def sample(i: int, value: float, **change: object) -> Sample:
    fields: dict[str, object] = {
        "at_s": 0.1 * i,
        "pid": 1,
        "process": "main",
        "readings": {"rss_bytes": value},
        "step": i,
    }
    return Sample(**(fields | change))  # type: ignore[arg-type]


def verdicts(y: np.ndarray, **change: object) -> set[Verdict]:
    """Every verdict said at one of a hundred looks."""
    live, said = LiveVerdict(), set()
    for i, value in enumerate(y.tolist()):
        live.add(sample(i, value, **change))
        if i % max(1, len(y) // 100) == 0:
            said.add(live.verdict())
    return said


def found_of(live: LiveVerdict) -> Finding:
    found = live.finding()
    assert found is not None
    return found


def noise(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 2e6, n)


def test_before_any_sample_nothing_is_said() -> None:
    assert LiveVerdict().finding() is None
    assert LiveVerdict().verdict() is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("seed", range(2))
def test_a_flat_run_is_never_a_leak_at_any_look(seed: int) -> None:
    assert Verdict.LEAK not in verdicts(4 * GB + noise(1500, seed))


@pytest.mark.parametrize("ramp", [20, 60, 150])
def test_a_ramp_to_a_plateau_is_never_a_leak_and_ends_as_warmup(ramp: int) -> None:
    y = 4 * GB - 2 * GB * np.maximum(1 - np.arange(1500) / ramp, 0) + noise(1500)
    assert Verdict.LEAK not in verdicts(y)
    live = LiveVerdict()
    for i, value in enumerate(y.tolist()):
        live.add(sample(i, value))
    assert live.verdict() is Verdict.WARMUP


def test_spikes_and_sawteeth_on_a_flat_floor_are_never_a_leak() -> None:
    k = np.arange(1500)
    assert Verdict.LEAK not in verdicts(4 * GB + 3e8 * (k % 50 >= 45) + noise(1500))
    assert Verdict.LEAK not in verdicts(4 * GB + 2e8 * ((k / 17.3) % 1) + noise(1500))


def test_growth_after_a_plateau_is_found_while_it_runs() -> None:
    k = np.arange(1500)
    live = LiveVerdict()
    first = None
    for i, value in enumerate((4 * GB + 4e5 * np.maximum(k - 600, 0) + noise(1500)).tolist()):
        live.add(sample(i, value))
        if first is None and live.verdict() is Verdict.LEAK:
            first = i
    assert first is not None
    assert 600 < first < 900
    found = found_of(live)
    assert found.metric == "rss_bytes"
    assert found.process == "main"
    assert found.axis.kind is AxisKind.STEP
    assert found.growth_per_x is not None
    assert found.growth_per_x.value == pytest.approx(4e5, rel=0.05)


def test_a_leak_that_goes_on_evenly_stays_one() -> None:
    steps = np.arange(1600)
    y = 3e8 + 3e5 * np.maximum(0, steps - 300) + noise(len(steps)) / 10
    live, said = LiveVerdict(), []
    for i, value in enumerate(y.tolist()):
        live.add(sample(i, value))
        if not said or live.verdict() is not said[-1]:
            said.append(live.verdict())
    assert said[-1] is Verdict.LEAK
    assert said.count(Verdict.LEAK) == 1


def test_without_steps_time_is_the_axis() -> None:
    live = LiveVerdict()
    for i in range(4000):
        value = 4 * GB + 1e6 * max(i - 2000, 0)
        live.add(sample(i, value, step=None, at_s=0.3 * i))
    found = found_of(live)
    assert found.axis.kind is AxisKind.SECONDS
    assert found.verdict is Verdict.LEAK


def test_a_leak_in_one_process_is_a_leak_of_the_run_as_in_its_report() -> None:
    live = LiveVerdict()
    for i in range(1500):
        live.add(sample(i, 4 * GB))
        live.add(sample(i, 1 * GB + 1e6 * max(i - 500, 0), pid=2, process="worker 2"))
    assert live.verdict() is Verdict.LEAK
    assert found_of(live).process == "worker 2"
    for i in range(1500, 3000):
        live.add(sample(i, 4 * GB))
    assert live.verdict() is Verdict.LEAK


def test_each_series_has_a_finding_of_its_own() -> None:
    live = LiveVerdict()
    for i in range(400):
        live.add(sample(i, GB + 5e6 * i, pid=1, process="rank0"))
        live.add(sample(i, GB, pid=2, process="rank1"))
    found = live.findings()
    assert set(found) == {("rank0", "rss_bytes"), ("rank1", "rss_bytes")}
    growth = found["rank0", "rss_bytes"].growth_per_x
    assert growth is not None
    assert growth.value == pytest.approx(5e6, rel=0.01)


def test_a_restarted_process_is_judged_anew() -> None:
    live = LiveVerdict()
    for i in range(1500):
        live.add(sample(i, 1 * GB + 1e6 * max(i - 500, 0)))
    assert live.verdict() is Verdict.LEAK
    for i in range(1500, 3000):
        live.add(sample(i, 1 * GB, pid=2))
        assert live.verdict() is not Verdict.LEAK or i < 1520
    assert live.verdict() is Verdict.STABLE


def test_growth_below_evaluations_is_found() -> None:
    rng, live = np.random.default_rng(3), LiveVerdict()
    for i in range(5000):
        passing = i % 40 >= 30
        value = 4 * GB + (1 + rng.uniform()) * GB * passing + 5e5 * max(i - 2000, 0)
        live.add(sample(i, value, phase="eval" if passing else "train"))
    assert live.verdict() is Verdict.LEAK
    assert found_of(live).growth_per_x is not None
    assert found_of(live).growth_per_x.value == pytest.approx(5e5, rel=0.1)


def test_readings_that_are_no_numbers_and_counters_of_the_user_are_passed_over() -> None:
    live = LiveVerdict()
    for i in range(500):
        live.add(sample(i, float("nan")))
        live.add(sample(i, 0.0, readings={"seen": i, "rss_bytes": float("inf")}))
    assert live.verdict() is Verdict.INCONCLUSIVE


def test_memory_does_not_grow_with_samples_or_processes() -> None:
    tracemalloc.start()
    live = LiveVerdict()
    for i in range(2 * MOST_TRACKS):
        live.add(sample(i, GB, pid=i, process=f"worker {i}"))
    for i in range(2000):
        live.add(sample(i, GB + i % 7))
    before = tracemalloc.get_traced_memory()[0]
    for i in range(2 * MOST_TRACKS, 4 * MOST_TRACKS):
        live.add(sample(i, GB, pid=i, process=f"worker {i}"))
    for i in range(2000, 5000):
        live.add(sample(i, GB + i % 7))
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 200_000


@pytest.mark.alone
def test_a_sample_costs_microseconds() -> None:
    live, y = LiveVerdict(), (GB + noise(20_000)).tolist()
    begun = time.process_time()
    for i, value in enumerate(y):
        live.add(sample(i, value))
        live.finding()
    assert (time.process_time() - begun) / len(y) < 200e-6


def test_the_same_samples_give_the_same_answer() -> None:
    y = 4 * GB + 2e5 * np.maximum(np.arange(1200) - 500, 0) + noise(1200)
    one, other = LiveVerdict(), LiveVerdict()
    for i, value in enumerate(y.tolist()):
        one.add(sample(i, value))
        other.add(sample(i, value))
    assert one.finding() == other.finding()


def first_leak(y: np.ndarray, *, stride: int = 1, metric: str = "rss_bytes") -> int | None:
    live = LiveVerdict()
    for i, value in enumerate(y.tolist()):
        live.add(sample(i, 0.0, step=i * stride, readings={metric: value}))
        if live.verdict() is Verdict.LEAK:
            return i
    return None


def test_a_fast_ramp_from_the_start_is_no_leak_for_thousands_of_steps() -> None:
    y = 2 * GB + 4e6 * np.minimum(np.arange(2000.0), 1500) + noise(2000)
    assert first_leak(y, stride=5) is None


def test_a_creep_from_the_start_that_no_warmup_is_as_slow_as_is_found_soon() -> None:
    found = first_leak(4 * GB + 4e4 * np.arange(1000.0) + noise(1000) / 10, stride=10)
    assert found is not None
    assert found < 200


def test_an_exact_meter_that_grows_evenly_is_found_after_hundreds_of_steps_not_tens() -> None:
    found = first_leak(1e8 + 3e5 * np.arange(600.0), metric="malloc_bytes")
    assert found is not None
    assert 150 < found < 500


def test_the_tail_of_a_saturating_warmup_is_no_slow_leak() -> None:
    y = 4 * GB - 2 * GB * np.exp(-np.arange(2000.0) / 200) + noise(2000)
    assert first_leak(y, stride=10) is None


def test_one_long_tooth_of_a_sawtooth_is_no_leak() -> None:
    y = 4 * GB + 4e8 * ((np.arange(3000.0) / 310.7) % 1) + noise(3000)
    assert first_leak(y, stride=10) is None


def test_floors_of_teeth_that_rise_are_found() -> None:
    k = np.arange(2500.0)
    y = 4 * GB + 2e8 * ((k / 17.3) % 1) + 1e5 * k + noise(2500)
    assert first_leak(y, stride=20) is not None


@pytest.mark.parametrize("memory", [0.5, 0.9, 0.98])
def test_noise_with_a_long_memory_is_no_leak(memory: float) -> None:
    shocks, y, now = noise(1000), np.empty(1000), 0.0
    for i in range(1000):
        now = memory * now + shocks[i]
        y[i] = 4 * GB + 4 * now
    assert first_leak(y) is None


def test_missing_steps_in_between_and_gaps_change_nothing() -> None:
    rng, live = np.random.default_rng(8), LiveVerdict()
    for i in range(1500):
        if rng.uniform() < 0.2:
            continue
        step = None if rng.uniform() < 0.1 else 10 * i
        value = float("nan") if rng.uniform() < 0.1 else 4 * GB + 4e5 * max(i - 600, 0)
        live.add(sample(i, value + 2e6 * rng.normal(), step=step))
    assert live.verdict() is Verdict.LEAK


def test_resident_memory_that_grows_over_level_private_memory_is_no_leak() -> None:
    """Pages of a mapped file that are touched one after the other: the report says so too."""
    live = LiveVerdict()
    for i in range(3000):
        readings = {
            "rss_bytes": 1e9 + 2e5 * i + i * 7919 % 5 * 4096,
            "uss_bytes": 5e8 + i % 3 * 4096,
        }
        live.add(sample(i, 0.0, readings=readings))
        assert live.verdict() is not Verdict.LEAK


def test_counts_explain_and_are_no_leak_beside_level_memory() -> None:
    live = LiveVerdict()
    for i in range(2000):
        live.add(sample(i, 0.0, readings={"rss_bytes": 1e9 + i % 5 * 4096, "tensors": 100 + i}))
    assert live.verdict() is Verdict.STABLE


def test_a_rank_that_fills_its_record_of_collectives_is_no_leak() -> None:
    live = LiveVerdict()
    for i in range(1500):
        live.add(sample(i, 0.0, process="rank0", readings={"malloc_bytes": 5e7 + 400 * i}))
        assert live.verdict() is not Verdict.LEAK
