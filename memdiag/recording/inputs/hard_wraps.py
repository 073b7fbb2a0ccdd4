"""Joins lines of a log that a console has cut at its width: `... mem` above `_alloc=8123 MB`."""

from __future__ import annotations

import re
from itertools import pairwise

# Heuristic: consoles are not narrower; so many lines are cut, and such a share of all.
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
    goes_on = [False, *(len(above) == width for above, _ in pairwise(lines))]
    begins = {_form(line) for line, on in zip(lines, goes_on, strict=True) if not on and line}
    alike = sum(
        _form(line) in begins for line, on in zip(lines, goes_on, strict=True) if on and line
    )
    within = sum(
        _WITHIN.fullmatch(above[-1:] + b"\n" + below[:1]) is not None
        for above, below in pairwise(lines)
        if len(above) == width
    )
    if alike > _FEW * cut or cut - within > 1 + _FEW * cut:
        return text
    joined: list[bytes] = []
    for line, on in zip(lines, goes_on, strict=True):
        if on and joined:
            joined[-1] += line
        else:
            joined.append(line)
    return b"\n".join(joined)


def _form(line: bytes) -> bytes:
    return re.sub(rb"[0-9]", b"0", line[:_BEGINNING])
