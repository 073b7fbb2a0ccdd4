"""What makes readings of the cells of a table, each on tables that differ from the fixtures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from logs import read_log

from memdiag.recording.parsing.column_meaning import recognise
from memdiag.recording.parsing.number_marks import decimal_marks

N = 12


@pytest.mark.parametrize("name", ["Processed (GB)", "Leídos (GB)", "Прочитано (ГБ)", "size_bytes"])
def test_beside_words_of_memory_a_unit_alone_is_no_memory(tmp_path: Path, name: str) -> None:
    rows = [f"{n},900,{n}" for n in range(N)]
    recording = read_log(tmp_path, [f"epoch,RSS (MB),{name}", *rows])
    assert [one.column for one in recording.series] == ["RSS (MB)"]
    assert f"not read as memory in use: {name}" in recording.notes
    (alone,) = read_log(tmp_path, [f"epoch,loss,{name}", *rows]).series
    assert alone.column == name


@pytest.mark.parametrize("name", ["gpu0_mb", "used (GB)", "host_shared_mb", "cpu_mb", "cache_mb"])
def test_words_of_amounts_and_of_what_has_memory_are_enough(name: str) -> None:
    assert not recognise(name).by_unit


def test_sizes_of_other_objects_are_no_memory(tmp_path: Path) -> None:
    rows = [
        row
        for n in range(N)
        for row in ({"step": n, "rss_bytes": 1 << 30}, {"step": n, "event": "saved", "bytes": n})
    ]
    (series,) = read_log(tmp_path, list(map(json.dumps, rows))).series
    assert series.column == "rss_bytes"


def test_a_key_that_is_a_unit_names_no_memory(tmp_path: Path) -> None:
    lines = [f"step={n} rss=1.5GiB bytes={n}000" for n in range(N)]
    recording = read_log(tmp_path, lines)
    assert [one.column for one in recording.series] == ["rss (bytes)"]
    assert 'not read as memory in use: "bytes"' in recording.notes


@pytest.mark.parametrize(
    ("number", "mark"),
    [
        ("1.204,5", ","),
        ("7\u202f340,5", ","),
        ("3.645.622", ","),
        ("0,016", ","),
        ("1,204.5", "."),
        ("1’204.5", "."),
        ("12,31,444", "."),
        ("1.425", ""),
        ("1,425", ""),
        ("10.120.130.140", ""),
        ("2.6.0", ""),
    ],
)
def test_a_number_shows_which_mark_stands_before_decimals(number: str, mark: str) -> None:
    assert list(decimal_marks([number])) == list(mark)


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u2009", "\u202f", "’"])
def test_blanks_stand_between_thousands(tmp_path: Path, blank: str) -> None:
    rows = [f"{n};7{blank}34{n % 10},5" for n in range(N)]
    (series,) = read_log(tmp_path, ["step;rss (MB)", *rows]).series
    assert series.y[:2].tolist() == [7340.5e6, 7341.5e6]


def test_one_cell_shows_the_marks_of_all(tmp_path: Path) -> None:
    rows = [f"{n}.000\t1.{n:03}\t{'0,25' if n % 2 else '0,5'}" for n in range(1, N)]
    (series,) = read_log(tmp_path, ["step\trss (MB)\tloss", *rows]).series
    assert series.x[:2].tolist() == [1000, 2000]
    assert series.y[:2].tolist() == [1001e6, 1002e6]


def test_a_count_that_would_fall_shows_the_marks(tmp_path: Path) -> None:
    rows = [f"{250 * n:,}".replace(",", ".") + "\t512" for n in range(1, N)]
    (series,) = read_log(tmp_path, ["step\trss (MB)", *rows]).series
    assert series.x[:5].tolist() == [250, 500, 750, 1000, 1250]


def test_points_that_may_be_either_are_noted(tmp_path: Path) -> None:
    rows = [f"{n}\t{(900, '1.100', 999, '1.020')[n % 4]}" for n in range(N)]
    notes = read_log(tmp_path, ["step\trss (MB)", *rows]).notes
    assert any("1.000 is one or one thousand" in note for note in notes)


def test_decimals_of_a_table_with_semicolons_stay(tmp_path: Path) -> None:
    rows = [f"{n};1.{n:03};0.{n:03}" for n in range(N)]
    (series,) = read_log(tmp_path, ["step;rss (MB);loss", *rows]).series
    assert series.y[1] == pytest.approx(1.001e6)


def test_a_log_has_points_between_thousands(tmp_path: Path) -> None:
    lines = [
        f"9:{n:02}:22.408 10.120.130.140 Schritt {n}.000/9.000: loss 0,{n + 10}1, RSS 1.{n:03} MB"
        for n in range(1, N)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.x[:2].tolist() == [1000, 2000]
    assert series.y[:2].tolist() == [1001e6, 1002e6]


def test_units_of_different_size_are_no_count(tmp_path: Path) -> None:
    cells = ["975 MiB", "990 MiB", "1.002 GiB", *["1.250 GiB"] * N]
    rows = [f"{n}|{cell}" for n, cell in enumerate(cells)]
    (series,) = read_log(tmp_path, ["step|rss", *rows]).series
    assert series.y[2] == pytest.approx(1.002 * (1 << 30))
