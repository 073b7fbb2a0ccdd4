"""Text from outside, made harmless: the only place that decides what may reach a terminal.

File, phase, process and column names, log lines and notes are chosen by others. What could move
the cursor, change colours, reorder or hide text, or start a new line is shown as an escape
(`\\x1b`, `\\u202e`, `\\n`) so that the reader sees that it is there.
"""

from __future__ import annotations

import unicodedata

# Control, format (bidirectional overrides, zero-width joiners), surrogate, private use,
# unassigned, line and paragraph separators.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# A letter carries a few marks in real writing; dozens of them paint over the neighbouring lines.
_MARKS_IN_A_ROW = 3


def printable(text: str, *, ascii_only: bool = False) -> str:
    """`text` on one line, with everything that a terminal might act upon shown as an escape.

    Wide characters and a few combining marks stay; with `ascii_only` everything outside ASCII
    becomes an escape. A text that is harmless already comes back unchanged.
    """
    if text.isascii() and text.isprintable():
        return text
    shown = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in {"Mn", "Me"} else 0
        unsafe = marks > _MARKS_IN_A_ROW or unicodedata.category(character) in _UNSAFE_CATEGORIES
        foreign = ascii_only and not character.isascii()
        shown.append(_escape(character) if unsafe or foreign else character)
    return "".join(shown)


def _escape(character: str) -> str:
    code = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
