"""Text is wrapped by cells, numbers stay with their units, columns align."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report import diagnoses
from rich.cells import cell_len
from rich.text import Text

from memdiag.report.text import rates, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column, joined, paragraph, table
from memdiag.values.measurements import Axis, AxisKind, Unit
from memdiag.values.verdict import Reason, Verdict

PLAIN = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), max_size=300)


@given(PLAIN, st.integers(min_value=40, max_value=100))
def test_a_paragraph_keeps_every_word_within_its_width(text: str, width: int) -> None:
    lines = [line.plain for line in paragraph(text, width)]
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_lead_is_bold_on_each_of_its_lines() -> None:
    lines = paragraph("told.", 20, lead="some words before what is", hanging=2)
    bold = [line.plain[span.start : span.end] for line in lines for span in line.spans]
    assert " ".join(bold) == "some words before what is"
    assert len(lines) > 1


def test_numbers_are_not_parted_from_their_units() -> None:
    text = "It takes 14.1 GB, 291 ± 12 MB per step, 1 min 50 s, and 99% of (16.0 GB)."
    for width in range(30, 90):
        lines = [line.plain.strip() for line in paragraph(text, width)]
        assert not any(line.startswith(("GB", "MB", "%", "±", "min", "s,")) for line in lines)


def test_columns_align_wide_characters() -> None:
    names, sizes = [Text("訓練"), Text("a")], [Text("1 GB"), Text("17.0 GB")]
    lines = table([Column("name", names), Column("now", sizes, right=True)])
    assert [line.cell_len for line in lines] == [lines[0].cell_len] * 3


def test_long_names_keep_both_ends() -> None:
    screen = Screen(width=80)
    name = screen.show("/data/experiments/2026/run-17/memory.csv", cells=20)
    assert name.startswith("/data/exp")
    assert name.endswith("memory.csv")
    assert cell_len(name) <= 20


@given(st.text(max_size=80), st.integers(min_value=4, max_value=60), st.booleans())
def test_a_name_never_exceeds_its_cells(text: str, cells: int, ascii_only: bool) -> None:
    shown = Screen(width=80, ascii_only=ascii_only).show(text, cells=cells)
    assert cell_len(shown) <= cells


def test_lists_read_as_people_write_them() -> None:
    assert joined(["a"]) == "a"
    assert joined(["a", "b", "c"]) == "a, b and c"


@pytest.mark.parametrize(
    ("growth", "kind", "unit", "words_of_rate"),
    [
        (291e6, AxisKind.STEP, Unit.BYTES, "+291 MB per step"),
        (0.02, AxisKind.STEP, Unit.BYTES, "+20 B per 1,000 steps"),
        (2e6, AxisKind.SECONDS, Unit.BYTES, "+2.00 MB per second"),
        (25_800.0, AxisKind.SECONDS, Unit.BYTES, "+1.55 MB per minute"),
        (100.0, AxisKind.SECONDS, Unit.BYTES, "+360 KB per hour"),
        (12.0, AxisKind.EPOCH, Unit.COUNT, "+12 per epoch"),
        (0.0, AxisKind.REQUEST, Unit.COUNT, "0 per unit"),
    ],
)
def test_rates_are_told_in_a_unit_that_suits_them(
    growth: float, kind: AxisKind, unit: Unit, words_of_rate: str
) -> None:
    finding = diagnoses.series([(0.0, 0.0), (1.0, growth)], *_LEAK)
    finding = replace(finding, axis=Axis(name="", kind=kind), unit=unit)
    rate = rates.of(finding)
    assert rate is not None
    assert rate.brief() == words_of_rate


_LEAK = (Verdict.LEAK, Reason.REGULAR_GROWTH)


@pytest.mark.parametrize(
    ("name", "kind", "many"),
    [
        ("step", AxisKind.STEP, "steps"),
        ("global_step", AxisKind.STEP, "steps"),
        ("cycle", AxisKind.INDEX, "cycles"),
        ("query", AxisKind.REQUEST, "queries"),
        ("messages", AxisKind.REQUEST, "messages"),
        ("queries", AxisKind.REQUEST, "queries"),
        ("pass", AxisKind.INDEX, "samples"),
        ("n_requests", AxisKind.REQUEST, "requests"),
        ("x", AxisKind.REQUEST, "units"),
        ("index", AxisKind.INDEX, "samples"),
        ("\x1b[2J", AxisKind.INDEX, "samples"),
    ],
)
def test_the_axis_is_called_by_its_column_where_that_is_a_word(
    name: str, kind: AxisKind, many: str
) -> None:
    assert wording.axis(Axis(name=name, kind=kind), 2) == many
