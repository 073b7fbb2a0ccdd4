"""A log's shape finds in a line just what the fields' own patterns find in it."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdiag.recording.textlog.discover_fields import Field, find_fields
from memdiag.recording.textlog.dominant_template import Shape, find_shape
from memdiag.values import units

_WORDS = ["step", "rss", "vram:", "MB", "GB", "MB,", "|", "(", ")", "+", "-", "/", "/9", "[", "]"]
_WORDS += [",", ".", ":", "=", " ", "  ", "tensors", "mem", "e", "x", "%", "s", "é", "step:"]
_figures = st.one_of(
    st.integers(0, 99999).map(str),
    st.integers(0, 99999).map(lambda n: f"{n:,}"),
    st.integers(0, 999).map(lambda n: f"{n / 10}"),
    st.sampled_from(["-5", "+7", "1e-4", "2.5e3", "0x1", "7b", "1.2.3"]),
)


@st.composite
def _logs(draw: st.DrawFn) -> list[str]:
    """Lines of one template, whose figures and a few words are drawn anew for each."""
    template = draw(st.lists(st.sampled_from([*_WORDS, "#", "#", "#", "#"]), min_size=2))
    gap = draw(st.sampled_from(["", " ", " "]))
    lines = []
    for _ in range(draw(st.integers(4, 8))):
        words = [draw(_figures) if word == "#" else word for word in template]
        lines.append(gap.join(words))
    return lines + draw(st.lists(st.sampled_from(lines), max_size=9))


def _by_field(field: Field, line: str) -> float | None:
    """Its figure as the field's pattern finds it, in bytes where a unit stands behind it."""
    found = re.search(field.pattern, line)
    if found is None:
        return None
    figure = float(found.group(1).replace(",", ""))
    return figure * float(units.bytes_per_unit(found.group(2) or "") or 1)


def _by_shape(shape: Shape, line: str) -> list[float] | None:
    groups = pl.Series([line]).str.extract_groups(shape.pattern).struct.unnest().row(0)
    if groups[0] is None:
        return None
    return [float(groups[number - 1]) * factor for number, factor in shape.figures]


@settings(max_examples=300, deadline=None)
@given(lines=_logs())
def test_the_shape_finds_what_the_fields_find(lines: list[str]) -> None:
    fields = find_fields(lines)
    shape = find_shape(lines, fields) if fields else None
    if shape is None:
        return
    taken = [figures for line in lines if (figures := _by_shape(shape, line)) is not None]
    assert taken  # at least the line that it was made of
    for line in lines:
        figures = _by_shape(shape, line)
        assert figures is None or figures == [_by_field(field, line) for field in fields]


LINE = "trainer.py:7 step {0} loss 0.{0} lr 1e-4 | rss: {1} MB | vram: {1}.5 GiB 17%"


def test_a_trainers_lines_have_one_shape() -> None:
    lines = [LINE.format(n, 5000 + n) for n in range(20)]
    fields = find_fields(lines)
    shape = find_shape(lines, fields)
    assert shape is not None
    by_name = dict(zip([f.name for f in fields], _by_shape(shape, lines[9]) or (), strict=True))
    assert by_name == {"rss (MB)": 5009e6, "vram (GiB)": 5009.5 * 2**30, "step": 9.0}


@pytest.mark.parametrize(
    "line", ["step 1234,100 rss 5 MB", "step 7 rss -5 MB", "step 7 rss 5,100 MB", "step 7 loss 1"]
)
def test_figures_that_can_be_read_in_two_ways_are_left_to_their_fields(line: str) -> None:
    fields = find_fields(["step 7 rss 5 MB"] * 9)
    assert find_shape([line] * 9, fields) is None


def test_digits_of_a_name_are_no_figure() -> None:
    for name in ("rss({}step:0", "{}rss/9"):
        lines = [*[name.format(0)] * 3, name.format(1), name.format("0.0")]
        assert find_shape(lines, find_fields(lines)) is None


def test_lines_that_are_never_alike_have_no_shape() -> None:
    words = ["alpha", "beta", "gamma", "delta", "omega", "pi", "rho", "sigma", "tau"]
    lines = [f"{word} step {n} rss {n} MB" for n, word in enumerate(words)]
    assert find_shape(lines, find_fields(lines)) is None
