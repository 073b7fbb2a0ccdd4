"""Properties that hold for every series: what must not matter does not, and nothing raises."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_series import judge, series_of

from memdiag.values.measurements import AxisKind, Phases, Role, Series
from memdiag.values.verdict import Verdict

FAST = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
SHAPES = st.sampled_from(["flat", "ramp", "plateau", "late", "saw", "steps", "walk"])


def drawn(shape: str, n: int, seed: int) -> np.ndarray:
    """A series in bytes, whole kilobytes, as logs print them."""
    rng = np.random.default_rng(seed)
    k = np.arange(n, dtype=float)
    rise = rng.uniform(0.1, 2)
    course = {
        "flat": 0 * k,
        "ramp": rise * k / n,
        "plateau": rise * np.minimum(k / n, 0.4),
        "late": rise * np.maximum(k / n - 0.6, 0),
        "saw": 0.1 * ((k / max(n / 12, 4)) % 1) + 0.0 * k,
        "steps": rise * np.floor(8 * k / n) / 8,
        "walk": np.cumsum(rng.normal(0, 0.01, n)),
    }[shape]
    return np.round((1 + course + rng.normal(0, 1e-3, n)) * 1e6) * 1000


CASES = st.tuples(SHAPES, st.sampled_from([6, 15, 60, 300, 1000]), st.integers(0, 1000))


def said(series: Series) -> tuple[Verdict, str]:
    found = judge(series)
    return found.verdict, found.series[0].reason.value if found.series else ""


@FAST
@given(CASES)
def test_the_unit_of_a_log_does_not_matter(case: tuple[str, int, int]) -> None:
    y = drawn(*case)
    in_megabytes = np.round(y / 1e6, 3) * 1e6
    assert said(series_of(y)) == said(series_of(in_megabytes))


@FAST
@given(CASES, st.sampled_from([-1000.0, 17.0, 250_000.0]))
def test_a_shift_of_the_axis_does_not_matter(case: tuple[str, int, int], shift: float) -> None:
    y = drawn(*case)
    assert said(series_of(y)) == said(series_of(y, np.arange(len(y)) + shift))


@FAST
@given(CASES)
def test_the_order_of_rows_does_not_matter(case: tuple[str, int, int]) -> None:
    y = drawn(*case)
    order = np.random.default_rng(1).permutation(len(y))
    assert said(series_of(y)) == said(series_of(y[order], np.arange(len(y), dtype=float)[order]))


@FAST
@given(CASES)
def test_duplicated_columns_do_not_matter(case: tuple[str, int, int]) -> None:
    one = series_of(drawn(*case))
    twin = dataclasses.replace(one, column="copy")
    assert judge(one, twin).verdict is judge(one).verdict


@FAST
@given(CASES)
def test_a_constant_below_the_noise_does_not_matter(case: tuple[str, int, int]) -> None:
    y = drawn(*case)
    assert judge(series_of(y)).verdict is judge(series_of(y + 1000.0)).verdict


@FAST
@given(CASES, st.integers(1, 4))
def test_more_plateau_never_turns_warmup_into_leak(case: tuple[str, int, int], times: int) -> None:
    y = drawn(*case)
    if judge(series_of(y)).verdict is not Verdict.WARMUP:
        return
    half = y[-max(len(y) // 4, 2) :]
    rng = np.random.default_rng(2)
    more = rng.choice(half, size=times * len(y)) if np.ptp(half) < 0.05 * half[0] else None
    if more is not None:
        assert judge(series_of(np.concatenate([y, more]))).verdict is not Verdict.LEAK


READINGS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=64),
    st.sampled_from([0.0, 1.0, 1e9, -5.0, math.nan]),
)


@settings(FAST, max_examples=150)
@given(
    st.lists(st.tuples(READINGS, READINGS), max_size=60),
    st.sampled_from(list(Role)),
    st.sampled_from(list(AxisKind)),
    st.booleans(),
)
def test_nothing_raises(
    points: list[tuple[float, float]], role: Role, kind: AxisKind, tagged: bool
) -> None:
    x = np.array([p[0] for p in points], dtype=float)
    y = np.array([p[1] for p in points], dtype=float)
    phases = Phases(codes=np.arange(len(x)) % 3 - 1, names=("train", "eval")) if tagged else None
    clock = np.arange(len(x), dtype=float) if tagged else None
    found = judge(series_of(y, x, role=role, kind=kind, phases=phases, at_s=clock))
    for finding in found.series:
        assert 0 <= finding.confidence <= 1
        assert math.isfinite(finding.first_x)


@settings(FAST, max_examples=20)
@given(st.integers(0, 1000), st.integers(0, 10_000))
def test_no_length_raises(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.choice([np.nan, 0.0, 1.0, 1e9], size=n) * rng.normal(size=n)
    judge(series_of(y))
