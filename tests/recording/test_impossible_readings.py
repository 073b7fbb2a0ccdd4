"""Readings that cannot be memory are missing readings, and a note reports them."""

from __future__ import annotations

import numpy as np
import pytest

from memdiag.recording.tables.impossible_readings import without_impossible
from memdiag.values.measurements import Role

STEADY = np.linspace(1e9, 2e9, 100)


def with_one(value: float, at: int = 50) -> np.ndarray:
    values = STEADY.copy()
    values[at] = value
    return values


@pytest.mark.parametrize("value", [2.0**63 - 1, 2.0**64 - 1, -1.0, -9999e6, 1.5e12, 1e6])
def test_a_sentinel_or_a_lone_outlier_is_missing(value: float) -> None:
    values, notes = without_impossible(with_one(value), "rss", Role.RESIDENT)
    assert np.flatnonzero(np.isnan(values)).tolist() == [50]
    assert len(notes) == 1
    assert notes[0].startswith("1 reading of rss")


@pytest.mark.parametrize("at", [0, 99])
def test_an_extreme_first_or_last_reading_is_kept(at: int) -> None:
    for value in (1e12, 1e5):
        values, notes = without_impossible(with_one(value, at), "rss", Role.RESIDENT)
        assert np.isfinite(values).all()
        assert not notes


@pytest.mark.parametrize("places", [[0], [99], [50, 51], [98, 99], [0, 99]])
@pytest.mark.parametrize("value", [1e14, 9.9e14])
def test_readings_beyond_any_growth_are_missing_wherever_they_stand(
    places: list[int], value: float
) -> None:
    values = STEADY.copy()
    values[places] = value
    values, notes = without_impossible(values, "rss", Role.RESIDENT)
    assert np.flatnonzero(np.isnan(values)).tolist() == places
    assert len(notes) == 1
    assert notes[0].startswith(f"{len(places)} reading")


def test_a_first_allocation_and_a_last_release_are_kept() -> None:
    for values in ([0.0] * 98 + [5e9] * 2, [5e9] * 98 + [512.0] * 2, [512.0] * 2 + [5e9] * 98):
        kept, notes = without_impossible(np.array(values), "allocated", Role.DEVICE_ALLOCATED)
        assert np.isfinite(kept).all()
        assert not notes


def test_a_value_that_stays_is_kept() -> None:
    values = STEADY.copy()
    values[50:53] = 1e12
    assert np.isfinite(without_impossible(values, "rss", Role.RESIDENT)[0]).all()


def test_a_spike_within_two_orders_of_magnitude_is_kept() -> None:
    assert np.isfinite(without_impossible(with_one(9e10), "vram", Role.DEVICE)[0]).all()


def test_a_counter_may_be_negative() -> None:
    values, notes = without_impossible(STEADY - 1.5e9, "balance", Role.COUNTER)
    assert np.isfinite(values).all()
    assert not notes


def test_plain_readings_are_not_copied() -> None:
    assert without_impossible(STEADY, "rss", Role.RESIDENT)[0] is STEADY
