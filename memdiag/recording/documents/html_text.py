"""The text of an HTML page without tables, such as the export of a chat: a line for each block."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from memdiag.recording.inputs.source import Source

_BEGINS = re.compile(rb"\s*(?:<!--[^\n]{0,200}-->\s*)?<(?:!doctype html|html)\b", re.I)
_MAX_BYTES = 64 << 20
_TABLE = re.compile(rb"<table\b", re.I)
_INLINE = frozenset(("a", "b", "i", "u", "em", "strong", "span", "code", "small", "font", "tt"))
_UNSHOWN = frozenset(("script", "style", "title"))
# Attributes that may have the whole date of a time: `<div title="20.06.2024 11:00:05">11:00</div>`.
_DATED = ("datetime", "title")
_TIME = re.compile(r"[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}[T ,]{1,2}[0-9]{1,2}:[0-9]{2}")


def is_page(source: Source) -> bool:
    """Return True for a page without tables."""
    return _BEGINS.match(source.content) is not None and not _TABLE.search(source.content)


def text_of(source: Source) -> bytes:
    """Its text, with the date of a time in the place of the time."""
    page = _Page()
    page.feed(source.first_bytes(_MAX_BYTES).decode("utf-8", errors="replace"))
    page.close()
    lines = (" ".join(line.split()) for line in "".join(page.parts).split("\n"))
    return "\n".join(filter(None, lines)).encode() + b"\n"


class _Page(HTMLParser):
    """Collects the shown text."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._unshown = ""
        self._is_dated = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unshown = self._unshown or (tag if tag in _UNSHOWN else "")
        if tag not in _INLINE:
            self.parts.append("\n")
        known = dict(attrs)
        dates = (known.get(name) or "" for name in _DATED)
        date = next((one for one in dates if _TIME.search(one)), "")
        self._is_dated = bool(date)
        if date:
            self.parts.append(f" {date} ")

    def handle_endtag(self, tag: str) -> None:
        self._is_dated = False
        self._unshown = "" if tag == self._unshown else self._unshown
        if tag not in _INLINE:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not (self._unshown or self._is_dated):
            self.parts.append(data.replace("\n", " "))
