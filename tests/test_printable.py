"""Text from outside cannot act upon a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdiag.values.sanitize import printable

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_no_character_that_a_terminal_acts_upon_is_left(text: str) -> None:
    categories = {unicodedata.category(character) for character in printable(text)}
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(ANY_TEXT)
def test_ascii_only_leaves_ascii(text: str) -> None:
    shown = printable(text, ascii_only=True)
    assert shown.isascii()
    assert shown.isprintable()


@given(ANY_TEXT)
def test_printable_text_stays_as_it_is(text: str) -> None:
    assert printable(printable(text)) == printable(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\x9b31m", r"\x9b31m"),
        ("\udcff", r"\udcff"),
        ("a\u0301" + "\u0301" * 5, "a" + "\u0301" * 3 + r"\u0301" * 3),
        ("訓練 é", "訓練 é"),
        ("[bold]x[/]", "[bold]x[/]"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_is_hidden_becomes_visible(text: str, shown: str) -> None:
    assert printable(text) == shown
