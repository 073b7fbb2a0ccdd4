"""Lists of numbers in the source of charts and data frames."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from memdiag.errors import ReadError
from memdiag.recording.read import read

VALUES = [812 + 9 * n for n in range(12)]


def lists(path: Path, text: str) -> dict[str, list[float]]:
    """The values of each series, by the name of its column."""
    path.write_text(text, encoding="utf-8")
    return {series.column: list(series.y) for series in read(str(path)).series}


def shown(values: list[int]) -> str:
    return ", ".join(map(str, values))


def test_a_range_of_r_is_the_axis_of_the_lists_that_are_as_long(tmp_path: Path) -> None:
    text = f"structure(list(step = 1:12, other = 1:99, rss_kb = c({shown(VALUES)}L)), class = 1)"
    path = tmp_path / "x.R"
    assert lists(path, text) == {"rss_kb": [1000.0 * value for value in VALUES]}
    (series,) = read(str(path)).series
    assert (series.axis.name, list(series.x)) == ("step", list(range(1, 13)))


def test_each_line_of_a_chart_is_a_series(tmp_path: Path) -> None:
    text = f"""```mermaid
xychart-beta
    x-axis "epoch" [{shown(list(range(12)))}]
    y-axis "RSS (MB)" 0 --> 4000
    line "RSS of rank 0 (MB)" [{shown(VALUES)}]
    line "RSS of rank 1 (MB)" [{shown(VALUES[::-1])}]
```
"""
    assert [values[0] for values in lists(tmp_path / "x.md", text).values()] == [812e6, 911e6]


def test_a_plot_without_memory_is_passed_over(tmp_path: Path) -> None:
    pairs = " ".join(f"({n}, {value})" for n, value in enumerate(VALUES))
    plots = "".join(
        f"\\begin{{axis}}\n\\addplot coordinates {{{pairs}}};\n\\addlegendentry{{{name}}}\n"
        for name in ("loss", "heap (MB)")
    )
    assert list(lists(tmp_path / "x.tex", plots)) == ["heap (MB)"]


@pytest.mark.parametrize(
    "text",
    [
        "structure(list(" + ", ".join(f"a{n} = 1:999999999" for n in range(2000)),
        "structure(list(" * 20_000,
        " Row \u2502 a\n" + ("     \u2502 " + "A" * 60 + "!\n") * 20,
        "new Chart({datasets: [" + "label: 'RSS (MB)' " * 20_000,
        "<table><tr><td>step<td>" + "<" * 2_000_000,
    ],
)
def test_what_looks_like_one_and_is_none_takes_no_time(tmp_path: Path, text: str) -> None:
    began_s = time.process_time()
    with pytest.raises(ReadError):
        lists(tmp_path / "x.txt", text)
    assert time.process_time() - began_s < 30  # seconds; hours, if it were not linear
