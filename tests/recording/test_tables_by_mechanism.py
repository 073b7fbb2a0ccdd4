"""What makes readings of the cells of a table, each on tables that differ from the fixtures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from logs import read_log

from memdiag.recording.parsing.column_meaning import recognise

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
