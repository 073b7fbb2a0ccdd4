"""Seeded recordings of known truth (benchmarks/_jobs.py): whole, valid and the same every time."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from _jobs import FAMILIES, TRUTHS, Job, main, make

SEED = 4711
ALWAYS = {
    "waves": "bounded",
    "pass_cache_cut": "truncated",
    "garbage_waits": "truncated",
    "restarted_workers": "bounded",
    "ranks_filling": "truncated",
}


def _first(family: str) -> Job:
    return make(family, SEED, 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_job_is_a_valid_recording(family: str) -> None:
    job = _first(family)
    assert job.truth in TRUTHS
    names = [(s.process, s.metric) for s in job.recording.series]
    assert len(set(names)) == len(names)
    for series in job.recording.series:
        assert len(series.x) == len(series.y) >= 10
        assert series.at_s is not None
        assert len(series.at_s) == len(series.y)
        assert (np.diff(series.at_s) >= 0).all()
        placed = series.x[np.isfinite(series.x)]
        assert (np.diff(placed) >= 0).all()
        read = series.y[np.isfinite(series.y)]
        assert len(read) > 0
        assert (read >= 0).all()
        for of_samples in (series.phases and series.phases.codes, series.generation):
            assert of_samples is None or len(of_samples) == len(series.y)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_arguments_give_the_same_job_and_others_another(family: str) -> None:
    first, again, other = _first(family), _first(family), make(family, SEED, 1)
    assert (first.name, first.truth) == (again.name, again.truth)
    for one, same in zip(first.recording.series, again.recording.series, strict=True):
        np.testing.assert_array_equal(one.x, same.x)
        np.testing.assert_array_equal(one.y, same.y)
    assert not np.array_equal(
        first.recording.series[0].y, other.recording.series[0].y, equal_nan=True
    )


@pytest.mark.parametrize(("family", "truth"), ALWAYS.items())
def test_the_truth_follows_the_mechanism(family: str, truth: str) -> None:
    assert {make(family, SEED, number).truth for number in range(3)} == {truth}


@pytest.mark.parametrize("family", [name for name in FAMILIES if "leak" in name])
def test_a_leak_is_a_leak_or_grey_and_not_always_grey(family: str) -> None:
    truths = {make(family, SEED, number).truth for number in range(12)}
    assert "leak" in truths
    assert truths <= {"leak", "grey"}


def test_the_script_counts_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--per-family", "2", "service"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[:3] for row in rows[1:]] == [["service", "bounded", "2"]]
