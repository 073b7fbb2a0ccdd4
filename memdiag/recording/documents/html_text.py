"""The text of an HTML page without tables, such as the export of a chat: a line for each block."""

from __future__ import annotations

import re
from html import unescape

from memdiag.recording.inputs.source import Source

_BEGINS = re.compile(rb"\s*<(?:!doctype html|html)\b", re.I)
_MAX_BYTES = 64 << 20
_TABLE = re.compile(rb"<table\b", re.I)
# (Not `html.parser`: of tags that do not end it takes quadratic time.)
_TAG = re.compile(r"<([^<>]{1,2000})>")
_NAME = re.compile("/?([A-Za-z0-9]{1,20})")
_INLINE = frozenset(("a", "b", "i", "u", "em", "strong", "span", "code", "small", "font", "tt"))
_UNSHOWN = frozenset(("script", "style", "title"))
# Attributes that may have the whole date of a time: `<div title="20.06.2024 11:00:05">11:00</div>`.
_DATED = re.compile(r"""\b(?:datetime|title)=["']([^"'<>]{1,80})""")
_TIME = re.compile(r"[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}[T ,]{1,2}[0-9]{1,2}:[0-9]{2}")


def is_page(source: Source) -> bool:
    """Return True for a page without tables."""
    return _BEGINS.match(source.content) is not None and not _TABLE.search(source.content)


def text_of(source: Source) -> bytes:
    """Its text, with the date of a time in the place of the time."""
    page = source.first_bytes(_MAX_BYTES).decode("utf-8", errors="replace")
    shown: list[str] = []
    is_shown = True
    for at, piece in enumerate(_TAG.split(page)):
        if at % 2 == 0:
            shown.append(piece.replace("\n", " ") if is_shown else "")
            continue
        name = found[1].lower() if (found := _NAME.match(piece)) is not None else ""
        is_end = piece.startswith("/")
        dated = None if is_end else _DATED.search(piece)
        has_date = dated is not None and _TIME.search(dated[1]) is not None
        is_shown = is_end or not (has_date or name in _UNSHOWN)
        shown.append("" if name in _INLINE else "\n")
        shown.append(f" {dated[1]} " if dated is not None and has_date else "")
    lines = (" ".join(line.split()) for line in unescape("".join(shown)).split("\n"))
    return "\n".join(filter(None, lines)).encode() + b"\n"
