"""Makes text from outside safe to print. No other module decides what may reach a terminal.

Names of files, phases, processes and columns, log lines and notes come from other programs and
users. Characters that could move the cursor, change colors, reorder or hide text, or start a new
line are shown as escapes (`\\x1b`, `\\u202e`, `\\n`).
"""

from __future__ import annotations

import unicodedata

# Control, format (bidirectional overrides, zero-width joiners), surrogate, private use,
# unassigned, line and paragraph separators.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# A letter has a few combining marks in real text; dozens of them overwrite the adjacent lines.
_MARKS_IN_A_ROW = 3


def printable(text: str, *, ascii_only: bool = False) -> str:
    """`text` on one line, with every character that a terminal could act upon as an escape.

    Wide characters and a few combining marks are kept; with `ascii_only`, every character outside
    ASCII becomes an escape. Safe text is returned unchanged.
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
