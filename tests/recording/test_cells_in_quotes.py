"""CSV cells in quotes."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log, series_of


@pytest.mark.parametrize("cell", ["{}", '"{}"'])
@pytest.mark.parametrize("text", ["a\nb", "a, b\nrss_mb 99999,\n3,4,5", 'said ""no""\n\n', "ok"])
def test_a_cell_in_quotes_may_have_several_lines(tmp_path: Path, cell: str, text: str) -> None:
    lines = ['step,note,"rss\n(MB)"']
    for n in range(20):
        lines.append(f'{cell.format(n)},"{text if n % 3 else "ok"}",{cell.format(800 + n)}')
    series = series_of(read_log(tmp_path, lines), "rss_bytes")
    assert series.y.tolist() == [(800 + n) * 1e6 for n in range(20)]
    assert series.column == "rss (MB)"


def test_a_quote_that_is_not_closed_belongs_to_its_line(tmp_path: Path) -> None:
    lines = ["step,rss_mb,note", *(f"{n},{800 + n},{chr(34) * (n == 3)}a" for n in range(20))]
    assert len(series_of(read_log(tmp_path, lines), "rss_bytes").y) == 20
