"""What stays of a log that is too long to be held."""

from __future__ import annotations

import numpy as np
import pytest

from memdiag.recording.textlog.discover_fields import find_fields
from memdiag.recording.textlog.extract_blocks import Collector
from memdiag.recording.textlog.line_templates import lines_of
from memdiag.recording.textlog.minmax_decimation import decimated

NAN = np.nan


def test_the_extremes_of_each_bucket_stay() -> None:
    rng = np.random.default_rng(0)
    metrics = rng.normal(size=(2, 4000))
    kept = decimated(metrics, np.empty((0, 4000)), [], 1)
    assert len(kept) <= 4000 / 4
    assert kept.tolist() == sorted(set(kept.tolist()))
    for figures in metrics:
        blocks = figures.reshape(-1, 20)
        floors = [figures[kept][kept // 20 == n].min() for n in range(len(blocks))]
        tops = [figures[kept][kept // 20 == n].max() for n in range(len(blocks))]
        assert floors == blocks.min(axis=1).tolist()
        assert tops == blocks.max(axis=1).tolist()


def test_lines_of_each_tag_have_their_own_extremes() -> None:
    ranks = np.arange(4000) % 4
    metrics = (1000.0 * ranks + np.arange(4000) % 7)[None, :]
    kept = decimated(metrics, np.empty((0, 4000)), [ranks], 2)
    for rank in range(4):
        seen = metrics[0, kept[ranks[kept] == rank]] - 1000 * rank
        assert (seen.min(), seen.max()) == (0, 6)


def test_a_position_on_a_line_of_its_own_stays_with_the_figures_below_it() -> None:
    steps = np.where(np.arange(4000) % 2 == 0, np.arange(4000) // 2, NAN)[None, :]
    metrics = np.where(np.arange(4000) % 2 == 1, np.arange(4000) // 2, NAN)[None, :]
    kept = decimated(metrics, steps, [], 1)
    assert len(kept) <= 4000 / 4
    held = kept[np.isfinite(metrics[0, kept])]
    assert np.isin(held - 1, kept).all()


def test_of_lines_without_a_metric_only_the_last_position_stays() -> None:
    """The lines that follow may have figures."""
    steps = np.array([[0, 1, 2, 3, NAN, NAN]])
    assert decimated(np.full((1, 6), NAN), steps, [], 1).tolist() == [3]


def test_figures_have_the_position_above_them_though_it_was_read_before() -> None:
    """The text is read in pieces; here each ends between a step and its figures."""
    lines = [line for n in range(3000) for line in (f"step {n}", f"rss {5000 + n} MB")]
    collector = Collector(find_fields(lines[:300]), rows_at_most=500)
    for start in range(0, len(lines), 301):
        collector.read(lines_of("\n".join(lines[start : start + 301]).encode()))
    rss, step = collector.collected().values
    known = np.isfinite(rss)
    above = np.maximum.accumulate(np.where(np.isfinite(step), step, -1))
    assert collector.coarseness > 0
    assert np.array_equal(above[known], rss[known] / 1e6 - 5000)


@pytest.mark.parametrize("prefix", ["", "[rank{rank}] "])
def test_a_long_log_is_held_within_bounds_with_its_floor_and_its_peak(prefix: str) -> None:
    lines = [
        f"{prefix.format(rank=n % 2)}step {n} rss {5000 + n // 50 + n % 9} MB"
        for n in range(30_000)
    ]
    lines[20_000] = lines[20_000].replace("rss 5", "rss 9")
    fields = find_fields(lines[:300])
    collector = Collector(fields, rows_at_most=5000)
    for start in range(0, len(lines), 3000):
        collector.read(lines_of("\n".join(lines[start : start + 3000]).encode()))
    figures = collector.collected().values
    assert 1000 < figures.shape[1] <= 5000
    assert collector.coarseness > 0
    rss, step = figures[0] / 1e6, figures[1]
    assert rss.max() == float(lines[20_000].split()[-2])
    assert (np.diff(step) > 0).all()
    at = 5000 + step // 50 + step % 9
    assert np.array_equal(np.delete(rss, np.argmax(rss)), np.delete(at, np.argmax(rss)))
    for low in range(0, 30_000, 3000):
        inside = (step >= low) & (step < low + 3000)
        assert rss[inside].min() <= 5000 + low // 50 + 2
