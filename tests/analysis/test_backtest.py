"""Whether the end for want of memory was to be seen half-way, by what was recorded until then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from memory_series import until_killed

from memdiag.analysis.diagnose import diagnose
from memdiag.values.capacity import EarlyForecast
from memdiag.values.measurements import Cause, Ending, Recording, Series

LIMIT_BYTES = 4 << 30
KILLED = Ending(code=137, cause=Cause.OOM_KILLER, limit_bytes=LIMIT_BYTES)


def told(*series: Series, ending: Ending | None = KILLED) -> EarlyForecast | None:
    return diagnose(Recording(source="test", series=series, ending=ending)).early_forecast


@pytest.mark.parametrize("seed", range(8))
def test_the_first_half_of_a_leak_tells_where_it_ended(seed: int) -> None:
    series, killed = until_killed(seed, LIMIT_BYTES)
    seen = told(series)
    assert seen is not None
    assert seen.seen_until_x <= killed / 2
    assert abs(seen.at_x - killed) <= 0.25 * killed
    assert seen.low_x <= seen.at_x <= seen.high_x


def test_nothing_but_the_first_half_is_looked_at() -> None:
    series, killed = until_killed(3, LIMIT_BYTES)
    late = series.x > killed / 2 + 1
    other = replace(series, y=np.where(late, 0.9 * LIMIT_BYTES, series.y))
    assert told(other) == told(series)


def test_the_memory_of_all_processes_is_what_ran_out() -> None:
    series, _ = until_killed(1, LIMIT_BYTES)
    part = replace(series, y=series.y / 3, process="main")
    seen = told(part, series)
    assert seen is not None
    assert seen.series == 1


def test_only_an_end_by_a_known_limit_of_that_memory_is_foretold() -> None:
    series, _ = until_killed(1, LIMIT_BYTES)
    assert told(series, ending=None) is None
    assert told(series, ending=Ending(code=0)) is None
    assert told(series, ending=replace(KILLED, limit_bytes=None)) is None
    assert told(series, ending=replace(KILLED, cause=Cause.DEVICE_MEMORY)) is None


def test_a_limit_that_was_far_away_is_not_what_ended_it() -> None:
    series, _ = until_killed(1, LIMIT_BYTES)
    assert told(series, ending=replace(KILLED, limit_bytes=2 * LIMIT_BYTES)) is None


def test_what_grew_in_its_second_half_alone_was_not_foretold() -> None:
    series, killed = until_killed(1, LIMIT_BYTES)
    noise = np.random.default_rng(1).normal(0, 1 << 20, series.x.size)
    late = np.clip(series.x - 0.6 * killed, 0, None) * (8 << 20)
    assert told(replace(series, y=(1 << 30) + noise + late)) is None


def test_a_handful_of_samples_foretells_nothing() -> None:
    series, _ = until_killed(1, LIMIT_BYTES)
    assert series.at_s is not None
    few = replace(series, x=series.x[:3], y=series.y[:3], at_s=series.at_s[:3])
    assert told(few) is None
