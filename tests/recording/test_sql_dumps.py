"""Dumps of databases with readings of memory in a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError

N = 20
CREATE = """-- MySQL dump 10.13
CREATE TABLE `stat` (
  `id` int NOT NULL AUTO_INCREMENT,
  `ts` datetime NOT NULL,
  `note` text,
  `rss_bytes` bigint NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

"""


def row(n: int) -> str:
    return rf"({n},'2024-10-02 01:{n:02}:00','it''s, (a) \'note\'',{417591296 + n})"


def test_rows_of_one_statement_have_the_names_of_the_table(tmp_path: Path) -> None:
    rows = ",".join(map(row, range(N)))
    recording = read_log(tmp_path, f"{CREATE}INSERT INTO `stat` VALUES {rows};\n", "stat.sql")
    series = series_of(recording, "rss_bytes")
    assert series.y.tolist() == [417591296 + n for n in range(N)]
    assert series.x[-1] - series.x[0] == 60 * (N - 1)


def test_a_statement_for_each_row_has_names_of_its_own(tmp_path: Path) -> None:
    lines = [f'INSERT INTO "stat" ("step", "rss_mb") VALUES ({n}, {800 + n});' for n in range(N)]
    series = series_of(read_log(tmp_path, lines), "rss_bytes")
    assert (series.axis.name, series.y[-1]) == ("step", 819e6)


def test_rows_that_postgresql_copies_are_read(tmp_path: Path) -> None:
    rows = [f"{n}\t{800 + n}\t\\N" for n in range(N)]
    lines = ["COPY public.stat (step, rss_mb, note) FROM stdin;", *rows, "\\.", "", "-- done"]
    assert series_of(read_log(tmp_path, lines), "rss_bytes").y[-1] == 819e6


def test_a_dump_without_memory_is_refused(tmp_path: Path) -> None:
    lines = [f"INSERT INTO users (id, score) VALUES ({n}, {800 + n});" for n in range(N)]
    with pytest.raises(ReadError):
        read_log(tmp_path, lines)
