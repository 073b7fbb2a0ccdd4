"""Joins lines of a log that a console has cut at its width: `... mem` above `_alloc=8123 MB`."""

from __future__ import annotations

import re
from itertools import pairwise

# The width of a console, the number of lines that it has cut, and their share, at least. Heuristic.
_NARROWEST, _CUT_AT_LEAST, _CUT_SHARE = 60, 4, 0.25
# The first characters, which distinguish new lines from what continues one. Heuristic.
_BEGINNING = 6
# Share of the cut lines that may continue as a line begins, or between words. Heuristic.
_FEW = 0.1
# What stands on both sides of a cut within a word, a number or what joins them: `mem` `_alloc=81`.
_WITHIN = re.compile(rb"(?:[A-Za-z]\n[a-z]|[0-9.,]\n[0-9.]|[_=:./-]\n\w|\w\n[_=:.,]|.\n )")


def without_hard_wraps(text: bytes) -> bytes:
    """The text with lines joined if many are exactly as long as the longest, end within a word or
    number, and what follows those begins otherwise than all other lines do; else the text.
    """
    lines = [line.rstrip(b"\r") for line in text.split(b"\n")]
    width = max(map(len, lines))
    cut = sum(len(line) == width for line in lines)
    filled = sum(bool(line.strip()) for line in lines)
    if width < _NARROWEST or cut < max(_CUT_AT_LEAST, _CUT_SHARE * filled):
        return text
    pairs = list(pairwise(lines))
    begins = {_form(below) for above, below in [(b"", lines[0]), *pairs] if len(above) < width}
    cuts = [(above, below) for above, below in pairs if len(above) == width]
    alike = sum(bool(below) and _form(below) in begins for _, below in cuts)
    within = sum(_WITHIN.fullmatch(a[-1:] + b"\n" + b[:1]) is not None for a, b in cuts)
    if alike > _FEW * cut or cut - within > 1 + _FEW * cut:
        return text
    return lines[0] + b"".join(
        below if len(above) == width else b"\n" + below for above, below in pairs
    )


def _form(line: bytes) -> bytes:
    return re.sub(rb"[0-9]", b"0", line[:_BEGINNING])
