"""Records of one name and value in each line, printed again and again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log

from memdiag.values.measurements import AxisKind

N = 12


def _log(*record: str) -> list[str]:
    """Records in which `{n}` counts, and `{t}` is a minute."""
    return [line.format(n=n, t=f"{n:02}") for n in range(N) for line in record]


@pytest.mark.parametrize(
    "record",
    [
        ("Tue Mar  5 08:{t}:00 CET 2024", "    used.cput = 72:{t}:30", "    used.mem = {n}kb"),
        ("-[ RECORD {n} ]-+-----", "sampled_at | 2024-03-05 08:{t}:00", "backend_rss | {n} kB"),
        ("*** {n}. row ***", "  at: 2024-03-05 08:{t}:00", " rss_kb: {n}", "  disk_kb: 9"),
        (
            "STAT pid 7",
            "STAT time 17096263{t}",
            "STAT bytes {n}000",
            *(f"STAT v{n} a" for n in range(5)),
            "END",
        ),
        ("006 (4.0.0) 2024-03-05 08:{t}:00 Image updated: 5", "\t{n}  -  RSS of job (KB)", "..."),
        ("2024-03-05 08:{t}:00", "X-MIB::memReal.0 = INTEGER: {n} kB", "X-MIB::load.0 = STR: a"),
    ],
)
def test_each_record_is_a_row(tmp_path: Path, record: tuple[str, ...]) -> None:
    (series,) = read_log(tmp_path, _log(*record)).series
    assert series.axis.kind is AxisKind.SECONDS
    assert (series.y / 1e3).tolist() == list(range(N))
    assert series.x[-1] == (N - 1 if "STAT" in record[0] else 60 * (N - 1))


def test_a_record_may_lack_a_name(tmp_path: Path) -> None:
    lines = [line for line in _log("step={n}", "rss_mb={n}", "note=x", "") if line != "rss_mb=5"]
    (series,) = read_log(tmp_path, lines).series
    assert dict(zip(series.x, series.y / 1e6, strict=True)).keys() >= {4, 6}
    assert all(x == y / 1e6 for x, y in zip(series.x, series.y, strict=True) if np.isfinite(y))


def test_the_unit_of_a_name_may_stand_above_all_records(tmp_path: Path) -> None:
    lines = ["cmd: ./a", "time_unit: ms", *_log("#-----", "n={n}", "time={n}500", "mem_heap_B={n}")]
    (series,) = read_log(tmp_path, lines).series
    assert series.x.tolist() == [n + 0.5 for n in range(N)]
    assert series.axis.kind is AxisKind.SECONDS


def test_messages_of_an_exported_journal_are_lines_of_a_log(tmp_path: Path) -> None:
    entry = ("__CURSOR=s=9;i={n}e7", "__REALTIME_TIMESTAMP=17096263{t}000000", "_PID=7")
    (series,) = read_log(tmp_path, _log(*entry, "MESSAGE=did {n}7 jobs, rss={n}MB", "")).series
    assert series.y.tolist() == [n * 1e6 for n in range(N)]
    assert series.x.tolist() == list(range(N))


def test_a_value_may_stand_below_its_name(tmp_path: Path) -> None:
    name = r"\\\\pc\\prozess(python)\\arbeitsseiten :"
    lines = _log("05.03.2024 08:{t}:00    " + name, "    {n}000", "  ", "  handles :", "  7", "")
    series, *_ = read_log(tmp_path, ["Timestamp  CounterSamples", "---------  ---", *lines]).series
    assert series.axis.kind is AxisKind.SECONDS
    assert (series.x[-1], series.y[-1]) == (60 * (N - 1), 1000 * (N - 1))


def test_sections_and_lines_of_several_values_are_no_records(tmp_path: Path) -> None:
    of_two = _log("step: {n}", "GPU 0:", "  used: {n} MB", "GPU 1:", "  used: 5 MB")
    assert len(read_log(tmp_path, of_two).series) == 2
    (series,) = read_log(tmp_path, _log("step 2{n} | rss: {n} MB | loss: 2", "lr: 3e-4")).series
    assert len(series.y) == N
