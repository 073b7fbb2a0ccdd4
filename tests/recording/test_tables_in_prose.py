"""Tables of figures among lines about them, and figures that have no names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log

from memdiag.errors import ReadError, TooShort
from memdiag.values.measurements import AxisKind

MB = 1e6
PROSE = [
    "PyTorch:    2.10.0",
    "Device:     cpu",
    "Shape mode: varying (seq_len in [128, 1024])",
    "Stack:      4 blocks x 8 heads x d_model=256",
    "warming up",
]
RULE = "-" * 60


@pytest.mark.parametrize("rule", [[], [RULE]])
def test_a_table_among_prose_is_read_by_its_header(tmp_path: Path, rule: list[str]) -> None:
    """And not by its last column, in which nothing grows."""
    header = "  call     rss_mb       Δrss    mps_cur   live_t"
    rows = [f"{50 * i:6} {300 + 20 * i:10.1f} {20 * i:+10.1f} 0.0 50" for i in range(10)]
    found = read_log(tmp_path, [*PROSE, header, *rule, *rows, "Total elapsed: 7.2s (69.6 calls/s)"])
    series = {one.metric: one for one in found.series}
    rss = series["rss_bytes"]
    np.testing.assert_allclose(rss.y[np.isfinite(rss.y)], [(300 + 20 * i) * MB for i in range(10)])
    assert rss.axis.kind is AxisKind.REQUEST
    assert not any("Δ" in name or "delta" in name for name in series)


def test_a_small_table_above_a_log_is_not_taken_for_it(tmp_path: Path) -> None:
    table = ["layer mem_mb", *[f"{i} {100 + i}" for i in range(5)]]
    log = [f"step {i}: loss 0.5, rss {1000 + i} MB" for i in range(40)]
    found = read_log(tmp_path, [*table, *log])
    assert [len(one.y) for one in found.series if one.metric == "rss_bytes"] == [40]


@pytest.mark.parametrize("first", ["{i:04}", "{i}"])
def test_several_figures_without_names_are_refused(tmp_path: Path, first: str) -> None:
    """Nobody knows which of them is memory; the last need not be."""
    lines = [
        f"{first.format(i=50 * i)} {70_000_000 + 4096 * i} {9_882_448 + i} 406496"
        for i in range(12)
    ]
    with pytest.raises(ReadError, match="no names") as caught:
        read_log(tmp_path, lines)
    assert "header" in (caught.value.remedy or "")


def test_what_memory_is_of_may_take_more_words(tmp_path: Path) -> None:
    lines = []
    for i in range(12):
        lines.append(f"Memory consumed after parsed {20 + 4 * i}.5")
        lines.append(f"Memory consumed after deallocating {20.25 + 4 * i}")
    found = read_log(tmp_path, lines)
    by_metric = {one.metric: one.y[np.isfinite(one.y)] for one in found.series}
    assert by_metric["memory_consumed_after_parsed"].tolist() == [20.5 + 4 * i for i in range(12)]
    assert len(by_metric["memory_consumed_after_deallocating"]) == 12


def test_figures_after_a_phrase_with_memory_are_none_of_it_beside_others(tmp_path: Path) -> None:
    lines = [f"Memory leak test run with seed {1000 + i}, rss {512 + i}.0 MB" for i in range(40)]
    assert {one.metric for one in read_log(tmp_path, lines).series} == {"rss_bytes"}


def test_a_summary_of_layers_is_no_table_of_a_run(tmp_path: Path) -> None:
    layers = ["Model summary", "layer memory", *[f"{i} {20 * i}" for i in range(30)]]
    log = [f"iter {i}: rss = {1000 + i}.0 MB" for i in range(100)]
    rss = next(
        one for one in read_log(tmp_path, [*layers, *log]).series if one.metric == "rss_bytes"
    )
    assert len(rss.y) == 100


def test_a_column_of_durations_is_no_axis(tmp_path: Path) -> None:
    rows = [f"{i},{0.1 + 37 * i % 11 / 7:.3f},{500 + 2 * i}" for i in range(60)]
    (found,) = [
        s
        for s in read_log(tmp_path, ["time_s,fetch,rss_mb", *rows]).series
        if s.metric == "rss_bytes"
    ]
    assert found.axis.kind is AxisKind.SECONDS


@pytest.mark.parametrize("heading", ["Memory usage:", "RSS (MB)"])
def test_a_heading_of_two_words_is_one_name(tmp_path: Path, heading: str) -> None:
    """`10 511.12` is the tenth reading, under no two names, and no eleven thousand."""
    found = read_log(tmp_path, [heading, *[f"{10 * i} {500 + i}.12" for i in range(40)]])
    (memory,) = found.series
    assert memory.y[-1] / memory.y[0] == pytest.approx(539.12 / 500.12)
    assert memory.x[-1] == 390


@pytest.mark.parametrize(
    "above",
    ["Files that I uploaded:", "Files that I uploaded", "What I have, all of it:", "Model sizes:"],
)
@pytest.mark.parametrize("number", ["{at}. ", ""])
def test_a_clause_above_a_list_of_files_is_no_header(
    tmp_path: Path, above: str, number: str
) -> None:
    items = (f"{number.format(at=at)}{chr(97 + at)}.bin, {812 + 20 * at} MB" for at in range(12))
    with pytest.raises(ReadError):
        read_log(tmp_path, [above, *items])


def test_a_clause_about_memory_above_pairs_is_no_header(tmp_path: Path) -> None:
    rows = [f"{50 * at}, {812 + 20 * at}" for at in range(12)]
    (series,) = read_log(tmp_path, ["Memory of the job, in MB:", *rows]).series
    assert series.y.tolist() == [812 + 20 * at for at in range(12)]


def test_names_of_a_run_may_end_in_a_colon(tmp_path: Path) -> None:
    rows = [f"{50 * at}, {812 + 20 * at}" for at in range(12)]
    (series,) = read_log(tmp_path, ["step, rss (MB):", *rows]).series
    assert series.y.tolist() == [(812 + 20 * at) * MB for at in range(12)]
    assert series.axis.kind is AxisKind.STEP


def test_a_table_of_one_row_does_not_hide_the_lines_above_it(tmp_path: Path) -> None:
    """Of R, whose collector prints its own table."""
    lines = [f"chain {n} mem_used: {214 + n}.5 MB" for n in range(12)]
    lines += ["> gc()", "          used (Mb) gc trigger  (Mb) max used  (Mb)"]
    lines += ["Ncells 1210211 64.7    2161212 115.5  2161212 115.5"]
    (series,) = read_log(tmp_path, lines).series
    assert len(series.y) == 12
    assert series.y[0] == 214.5e6
    with pytest.raises(TooShort):
        read_log(tmp_path, lines[-2:], name="alone")
