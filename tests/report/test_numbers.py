"""Numbers read back as what they were, in the words that people use."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdiag.report.text import numbers
from memdiag.values.findings import Interval
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.units import parse_bytes, parse_seconds

FINITE = st.floats(min_value=-1e17, max_value=1e17, allow_nan=False)


@given(st.integers(min_value=0, max_value=999 * 10**15))
def test_a_size_reads_back_within_half_a_percent(size_bytes: int) -> None:
    assert parse_bytes(numbers.size(size_bytes)) == pytest.approx(size_bytes, rel=0.0051)


@given(st.integers(min_value=0, max_value=999))
def test_small_sizes_read_back_exactly(size_bytes: int) -> None:
    assert parse_bytes(numbers.size(size_bytes)) == size_bytes


@given(st.floats(min_value=0.001, max_value=1e8))
def test_a_duration_reads_back_within_its_rounding(seconds: float) -> None:
    words = numbers.duration(seconds).replace(",", "").split(" ")
    parts = [parse_seconds(f"{n}{unit}") for n, unit in zip(words[::2], words[1::2], strict=True)]
    assert len(parts) <= 2
    assert sum(parts) == pytest.approx(seconds, rel=0.051)


@given(FINITE)
def test_sizes_keep_their_sign_and_three_digits(value: float) -> None:
    text = numbers.size(value).split(" ")[0]
    digits = text.lstrip("-").replace(".", "").replace(",", "").lstrip("0")
    assert text.startswith("-") == (value < 0 and digits != "")
    assert len(digits) <= 4


@given(st.floats(min_value=0, max_value=1))
def test_nothing_is_quite_sure(confidence: float) -> None:
    percent = int(numbers.confidence(confidence).removesuffix("%"))
    assert 1 <= percent <= 99
    assert percent / 100 <= max(confidence, 0.01) + 1e-9


@given(FINITE, st.floats(min_value=0, max_value=1e12), st.sampled_from(Unit))
def test_every_estimate_can_be_written(value: float, half: float, unit: Unit) -> None:
    interval = Interval(value=value, low=value - half, high=value + half)
    text = numbers.estimate(interval, unit, "+-")
    assert text.isascii()
    assert "nan" not in text
    assert "e" not in text.replace("range", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1.00 KB"),
        (17_437e6, "17.4 GB"),
        (999.96e6, "1.00 GB"),
        (-640e3, "-640 KB"),
        (float("nan"), "?"),
    ],
)
def test_sizes(value: float, text: str) -> None:
    assert numbers.size(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.02, "20 ms"),
        (1.5, "1.5 s"),
        (9.97, "10 s"),
        (59.7, "1 min"),
        (110, "1 min 50 s"),
        (3599.9, "1 h"),
        (11100, "3 h 5 min"),
        (86399.9, "1 d"),
        (190000, "2 d 5 h"),
        (math.inf, "?"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert numbers.duration(seconds) == text


@pytest.mark.parametrize(
    ("interval", "unit", "text"),
    [
        ((291e6, 279e6, 303e6), Unit.BYTES, "+291 ± 12 MB"),
        ((-0.44e6, -0.75e6, -0.13e6), Unit.BYTES, "-440 ± 310 KB"),
        ((4e6, 1e6, 30e6), Unit.BYTES, "+4.00 MB (1.00 to 30.0 MB)"),
        ((0, 0, 0), Unit.BYTES, "0 B"),
        ((0, -900, 900), Unit.BYTES, "0 ± 900 B"),
        ((3.2, 2.9, 3.5), Unit.COUNT, "+3.20 ± 0.30"),
        ((3.2, -math.inf, math.inf), Unit.PERCENT, "+3.20% (range unknown)"),
    ],
)
def test_estimates(interval: tuple[float, float, float], unit: Unit, text: str) -> None:
    value, low, high = interval
    assert numbers.estimate(Interval(value=value, low=low, high=high), unit, "±") == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (17.0e9, 17.7e9, "17.0 to 17.7 GB"),
        (0.7e9, 1.2e9, "700 MB to 1.20 GB"),
        (4184e6, 4184e6, "4.18 GB"),
    ],
)
def test_ranges_name_their_unit_once(low: float, high: float, text: str) -> None:
    assert numbers.between(low, high, Unit.BYTES) == text


def test_positions_suit_their_axis() -> None:
    assert numbers.position(123456.0, AxisKind.STEP) == "123,456"
    assert numbers.position(56.2, AxisKind.STEP) == "56"
    assert numbers.position(1.5, AxisKind.EPOCH) == "1.50"
    assert numbers.position(110, AxisKind.SECONDS) == "1 min 50 s"


def test_probabilities_never_claim_zero() -> None:
    assert numbers.probability(0.0) == "p < .001"
    assert numbers.probability(0.0042) == "p = .004"
    assert numbers.probability(0.23) == "p = .23"
