"""Reading tables as people have them."""

from __future__ import annotations

import gzip
import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from logs import read_log

from memdiag.errors import ReadError
from memdiag.recording.read import expand, read
from memdiag.recording.read_options import MetricChoice, parse_metric
from memdiag.values.measurements import AxisKind, Recording, Role, Series, Unit


def _write(folder: Path, content: str | bytes, name: str = "log.csv") -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def _only(recording: Recording) -> Series:
    assert len(recording.series) == 1
    return recording.series[0]


STEPS = "step,rss_mb\n" + "".join(f"{10 * n},{5000 + n}\n" for n in range(8))


def test_tidy_csv_gives_its_axis_and_memory_in_bytes(tmp_path: Path) -> None:
    series = _only(read_log(tmp_path, STEPS))
    assert (series.metric, series.column, series.unit) == ("rss_bytes", "rss_mb", Unit.BYTES)
    assert (series.axis.name, series.axis.kind) == ("step", AxisKind.STEP)
    assert series.x.tolist() == [0, 10, 20, 30, 40, 50, 60, 70]
    assert series.y[0] == 5000e6
    assert series.resolution == 1e6


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(STEPS.replace(",", "\t"), id="tabs"),
        pytest.param(STEPS.replace(",", ";"), id="semicolons"),
        pytest.param(STEPS.replace(",", "   "), id="blanks"),
        pytest.param(STEPS.replace("\n", "\r\n"), id="crlf"),
        pytest.param("\ufeff" + STEPS, id="byte order mark"),
        pytest.param(STEPS.encode("utf-16"), id="utf-16"),
        pytest.param(STEPS.encode("utf-16-le"), id="utf-16 without mark"),
        pytest.param(gzip.compress(STEPS.encode()), id="gzip"),
        pytest.param("# made by hand\n\n" + STEPS, id="comment above"),
        pytest.param(STEPS.replace("step", '"step"'), id="quoted name"),
        pytest.param(STEPS[:-1], id="no newline at the end"),
        pytest.param(STEPS + "\n\n", id="blank lines at the end"),
    ],
)
def test_the_same_table_in_another_coat_reads_the_same(
    tmp_path: Path, content: str | bytes
) -> None:
    series = _only(read_log(tmp_path, content))
    assert series.metric == "rss_bytes"
    assert series.x.tolist() == [0, 10, 20, 30, 40, 50, 60, 70]
    assert series.y.tolist() == [(5000 + n) * 1e6 for n in range(8)]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (['"5,552"', '"17,412"', '"15,736"'], [5552.0, 17412.0, 15736.0]),
        (["23498 MiB", "23500 MiB", "23501 MiB"], [23498 * 2**20, 23500 * 2**20, 23501 * 2**20]),
        (["2.6G", "150.8M", "0.71GB"], [2.6e9, 150.8e6, 0.71e9]),
        (["1e3", "2.5e3", ".5"], [1000.0, 2500.0, 0.5]),
        (["5", "", "7"], [5.0, float("nan"), 7.0]),
        (["5", "NaN", "inf"], [5.0, float("nan"), float("nan")]),
        (["5", "[N/A]", "None"], [5.0, float("nan"), float("nan")]),
        (["5", "**7**", "`8`"], [5.0, 7.0, 8.0]),
    ],
)
def test_cells_as_people_write_them(tmp_path: Path, cells: list[str], values: list[float]) -> None:
    rows = "".join(f"{n},{cell}\n" for n, cell in enumerate(cells))
    series = _only(read_log(tmp_path, "step,rss\n" + rows))
    np.testing.assert_allclose(series.y, values, rtol=1e-12)


def test_units_in_cells_make_bytes(tmp_path: Path) -> None:
    series = _only(read_log(tmp_path, "step,memory\n1,100 MB\n2,200 MB\n"))
    assert (series.metric, series.unit) == ("memory_bytes", Unit.BYTES)


def test_decimal_commas_between_semicolons(tmp_path: Path) -> None:
    series = _only(read_log(tmp_path, "step;rss_mb\n1;5632,5\n2;5700,25\n"))
    assert series.y.tolist() == [5632.5e6, 5700.25e6]


def test_unknown_unit_is_said_and_not_invented(tmp_path: Path) -> None:
    recording = read_log(tmp_path, "step,memory\n1,6814\n2,6815\n3,6820\n")
    series = _only(recording)
    assert (series.metric, series.unit, series.y[0]) == ("memory", Unit.COUNT, 6814)
    assert any("unit of memory is unknown" in note for note in recording.notes)


def test_metric_option_gives_the_unit(tmp_path: Path) -> None:
    recording = read_log(
        tmp_path, "step,memory\n1,6814\n2,6815\n", metrics=(parse_metric("memory=MiB"),)
    )
    series = _only(recording)
    assert (series.metric, series.y[0]) == ("memory_bytes", 6814 * 2**20)
    assert recording.notes == ()


def test_metric_option_chooses_columns_by_any_of_their_names(tmp_path: Path) -> None:
    content = "step,RSS (MB),tensors,value\n1,5,7,3\n2,6,7,4\n"
    for name in ("RSS (MB)", "rss (mb)", "rss_bytes"):
        series = _only(read_log(tmp_path, content, metrics=(MetricChoice(name=name),)))
        assert series.metric == "rss_bytes"
    series = _only(read_log(tmp_path, content, metrics=(parse_metric("value=count"),)))
    assert (series.metric, series.unit) == ("value", Unit.COUNT)


def test_first_rising_column_is_the_axis_where_none_has_a_known_name(tmp_path: Path) -> None:
    series = _only(read_log(tmp_path, "noise,widget,rss_mb\n3,10,5\n1,11,6\n2,12,7\n"))
    assert (series.axis.name, series.axis.kind) == ("widget", AxisKind.INDEX)
    many = _only(read_log(tmp_path, "noise,widget,rss_mb\n3,10,5\n1,20,6\n2,30,7\n"))
    assert (many.axis.name, many.axis.kind) == ("widget", AxisKind.REQUEST)


def test_x_option_overrides_the_axis(tmp_path: Path) -> None:
    series = _only(read_log(tmp_path, "step,noise,rss_mb\n1,3,5\n2,9,6\n3,7,7\n", x="noise"))
    assert series.axis.name == "noise"
    assert series.x.tolist() == [3, 9, 7]


def test_time_is_converted_to_seconds(tmp_path: Path) -> None:
    series = _only(read_log(tmp_path, "time_h,rss_mb\n0,5\n1,6\n2,7\n"))
    assert series.axis.kind is AxisKind.SECONDS
    assert series.x.tolist() == [0, 3600, 7200]
    assert series.at_s is not None


@pytest.mark.parametrize(
    "stamps",
    [
        ["2024/11/23 12:23:29.950", "2024/11/23 12:23:30.950", "2024/11/23 12:23:31.950"],
        ["2025-07-01T16:48:53Z", "2025-07-01T16:48:54Z", "2025-07-01T16:48:55Z"],
        ["2025-07-01T16:48:53+02:00", "2025-07-01T16:48:54+02:00", "2025-07-01T16:48:55+02:00"],
        ["23:59:59", "00:00:00", "00:00:01"],
        ["1732364609.5", "1732364610.5", "1732364611.5"],
        ["1732364609500", "1732364610500", "1732364611500"],
    ],
)
def test_time_stamps_become_seconds_since_the_first(tmp_path: Path, stamps: list[str]) -> None:
    rows = "".join(f"{stamp},{n}\n" for n, stamp in enumerate(stamps))
    series = _only(read_log(tmp_path, "timestamp,rss_mb\n" + rows))
    assert np.diff(series.x).tolist() == pytest.approx([1.0, 1.0])


def test_step_axis_keeps_the_clock(tmp_path: Path) -> None:
    series = _only(read_log(tmp_path, "time_s,step,rss_mb\n0.5,1,5\n0.7,2,6\n0.9,3,6\n"))
    assert series.axis.name == "step"
    assert series.at_s is not None
    assert series.at_s.tolist() == [0.5, 0.7, 0.9]


def test_few_steps_on_many_samples_leave_time_as_the_axis(tmp_path: Path) -> None:
    rows = "".join(f"{n / 10},{n // 50},{100 + n}\n" for n in range(100))
    assert _only(read_log(tmp_path, "time_s,step,rss_mb\n" + rows)).axis.name == "time_s"


def test_start_up_before_the_first_step_has_no_position(tmp_path: Path) -> None:
    rows = "".join(f"{n / 10},{max(0, n - 100)},{100 + n}\n" for n in range(200))
    series = _only(read_log(tmp_path, "time_s,step,rss_mb\n" + rows))
    assert np.isnan(series.x[:101]).all()
    assert series.x[101] == 1


def test_phases_are_read(tmp_path: Path) -> None:
    recording = read_log(
        tmp_path, "step,phase,vram_mb\n1,Predict,5\n2,,6\n3,Correct,7\n4,Predict,8\n"
    )
    phases = _only(recording).phases
    assert phases is not None
    assert phases.names == ("Predict", "Correct")
    assert phases.codes.tolist() == [0, -1, 1, 0]


def test_phase_column_option(tmp_path: Path) -> None:
    content = "step,part,vram_mb\n1,a,5\n2,b,6\n"
    phases = _only(read_log(tmp_path, content, phase_column="part")).phases
    assert phases is not None
    assert phases.names == ("a", "b")


def test_interleaved_pids_are_processes(tmp_path: Path) -> None:
    content = "step,pid,rss_mb\n1,7,5\n1,8,50\n2,7,6\n2,8,60\n3,7,7\n3,8,70\n"
    recording = read_log(tmp_path, content)
    assert [(s.process, s.y.tolist()) for s in recording.series] == [
        ("pid 7", [5e6, 6e6, 7e6]),
        ("pid 8", [50e6, 60e6, 70e6]),
    ]
    assert all(s.generation is None for s in recording.series)


def test_pids_one_after_the_other_are_restarts(tmp_path: Path) -> None:
    content = "step,pid,rss_mb\n10,7,5\n20,7,6\n10,8,5\n20,8,6\n30,8,7\n"
    series = _only(read_log(tmp_path, content))
    assert series.generation is not None
    assert series.generation.tolist() == [0, 0, 1, 1, 1]
    assert series.x.tolist() == [10, 20, 10, 20, 30]


def test_ranks_are_processes_and_their_pids_restarts(tmp_path: Path) -> None:
    rows = [(1, 0, 70), (1, 1, 80), (2, 0, 70), (2, 1, 80), (1, 0, 71), (1, 1, 81), (2, 0, 71)]
    content = "step,rank,pid,rss_mb\n" + "".join(f"{s},{r},{p},5\n" for s, r, p in rows)
    recording = read_log(tmp_path, content)
    assert [s.process for s in recording.series] == ["rank 0", "rank 1"]
    assert recording.series[0].generation is not None
    assert recording.series[0].generation.tolist() == [0, 0, 1, 1]


def test_columns_with_one_canonical_name_stay_apart(tmp_path: Path) -> None:
    recording = read_log(tmp_path, "step,rss_mb,RSS (GB)\n1,5,1\n2,6,2\n")
    assert [(s.metric, s.column) for s in recording.series] == [
        ("rss_bytes", "rss_mb"),
        ("rss_bytes", "RSS (GB)"),
    ]


def test_loss_and_rates_are_no_memory(tmp_path: Path) -> None:
    content = "step,loss,lr,MB/s,tokens_per_s,rss_mb\n1,2.1,1e-3,5,7,5\n2,2.0,1e-3,5,7,6\n"
    assert _only(read_log(tmp_path, content)).metric == "rss_bytes"


def test_total_that_never_changes_is_no_reading(tmp_path: Path) -> None:
    content = "step,memory.used [MiB],memory.total [MiB]\n1,5,100\n2,6,100\n"
    assert _only(read_log(tmp_path, content)).metric == "memory_used_bytes"


def test_torn_last_line_is_left_out_and_mentioned(tmp_path: Path) -> None:
    recording = read_log(tmp_path, "step,tensors,rss_mb\n1,5,100\n2,5,100\n3,")
    assert len(recording.series[0].y) == 2
    assert any("torn" in note for note in recording.notes)


def test_text_among_the_figures_is_counted(tmp_path: Path) -> None:
    recording = read_log(tmp_path, "step,rss_mb\n1,5\n2,oops\n3,6\n")
    assert np.isnan(_only(recording).y[1])
    assert any("1 cell of rss_mb without a number" in n and "line 3" in n for n in recording.notes)


def test_late_text_in_a_long_column_does_not_lose_the_figures(tmp_path: Path) -> None:
    rows = "".join(f"{n},{n}\n" for n in range(3000)) + "3000,killed\n"
    series = _only(read_log(tmp_path, "step,rss_mb\n" + rows))
    assert np.isfinite(series.y).sum() == 3000


def test_hostile_names_are_made_harmless(tmp_path: Path) -> None:
    content = 'step,"rss\x1b[31m_mb",phase\n1,5,"a\x1b[2J"\n2,6,b\n'
    series = _only(read_log(tmp_path, content))
    assert "\x1b" not in series.column + series.metric
    assert series.phases is not None
    assert "\x1b" not in "".join(series.phases.names)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"   \n\n", "empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(200), "PNG"),
        (bytes(range(256)) * 8, "binary"),
        (b"step,rss_mb\n1,5\n", "one row"),
        (b"step,rss_mb\n", "no memory readings"),
        (b"step,loss\n1,5\n2,6\n", "looks like memory"),
        (b"name,colour\na,red\nb,blue\n", "no memory readings"),
        (b"1,5\n2,6\n3,7\n", "no names"),
        (b"step,rss_mb\n1,\n2,\n", "no numbers"),
        (b"PAR1 but not really", "Parquet"),
    ],
)
def test_what_cannot_be_read_says_why_and_what_to_try(
    tmp_path: Path, content: bytes, message: str
) -> None:
    source = _write(tmp_path, content)
    with pytest.raises(ReadError) as caught:
        read(source)
    assert message in caught.value.message
    assert caught.value.source == source
    assert caught.value.remedy or message == "empty"


def test_missing_file_directory_and_permission(tmp_path: Path) -> None:
    for source, message in ((str(tmp_path / "none.csv"), "no such file"), (str(tmp_path), "dir")):
        with pytest.raises(ReadError, match=message):
            read(source)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    source = _write(tmp_path, STEPS)
    Path(source).chmod(0)
    with pytest.raises(ReadError, match="permission"):
        read(source)


def test_options_that_name_no_column_list_the_columns(tmp_path: Path) -> None:
    for options in ({"x": "stpe"}, {"metrics": (MetricChoice(name="stpe"),)}):
        with pytest.raises(ReadError) as caught:
            read_log(tmp_path, STEPS, **options)
        assert "step, rss_mb" in caught.value.remedy


def test_two_columns_of_one_name_are_ambiguous(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="2 columns are called"):
        read_log(tmp_path, "step,a,a\n1,2,3\n2,3,4\n", metrics=(MetricChoice(name="a"),))


def test_expand_takes_files_directories_and_patterns(tmp_path: Path) -> None:
    a, b = _write(tmp_path, STEPS, "a.csv"), _write(tmp_path, STEPS, "b.csv")
    _write(tmp_path, "{}", "b.meta.json")
    odd = _write(tmp_path, STEPS, "[x].csv")
    assert expand([str(tmp_path)]) == [odd, a, b]
    assert expand([str(tmp_path / "?.csv"), a]) == [a, b]
    assert expand([odd, "-", "gone.csv"]) == [odd, "-", "gone.csv"]


def test_directory_without_recordings_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="no recordings"):
        expand([str(tmp_path)])


def test_falling_columns_are_marked(tmp_path: Path) -> None:
    series = _only(read_log(tmp_path, "step,available_mb\n1,5\n2,4\n"))
    assert series.falling
    assert series.role is Role.HOST


def test_the_user_can_say_that_memory_is_free(tmp_path: Path) -> None:
    content = "step,sobrante_mb\n1,5\n2,4\n"
    series = _only(read_log(tmp_path, content, metrics=(parse_metric("sobrante_mb=free"),)))
    assert (series.falling, series.may_be_free, series.y[0]) == (True, False, 5e6)


def test_columns_of_types_that_numpy_does_not_know(tmp_path: Path) -> None:
    decimals = pl.Series([Decimal(f"{5000 + n}.25") for n in range(8)])
    path = tmp_path / "log.parquet"
    pl.DataFrame({"step": range(8), "rss_mb": decimals}).write_parquet(path)
    assert _only(read(str(path))).y[0] == 5000.25e6
    beyond_64_bits = read_log(tmp_path, STEPS.replace("\n0,", f"\n{10**20},"))
    assert _only(beyond_64_bits).x[0] == 1e20


def test_columns_of_lists_and_bytes_are_passed_over(tmp_path: Path) -> None:
    lists = [[n] for n in range(8)]
    frame = pl.DataFrame(
        {"step": range(8), "rss_mb": range(8), "pid": lists, "rank": [b"\xff"] * 8}
    )
    path = tmp_path / "log.parquet"
    frame.write_parquet(path)
    assert _only(read(str(path))).y[7] == 7e6
    lines = "".join(f'{{"step": {n}, "rss_mb": {n}, "pid": [{n}]}}\n' for n in range(8))
    assert _only(read_log(tmp_path, lines)).y[7] == 7e6
    with pytest.raises(ReadError):
        read_log(tmp_path, '{"pid":[],"":{"pss":null}}')


def test_a_new_phase_for_every_sample_is_none(tmp_path: Path) -> None:
    rows = "".join(f"{n},batch {n},{5000 + n}\n" for n in range(5000))
    recording = read_log(tmp_path, "step,phase,rss_mb\n" + rows)
    assert _only(recording).phases is None
    assert any("5,000 different phases" in note for note in recording.notes)
