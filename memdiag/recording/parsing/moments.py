"""Names of columns that are moments of a run: `epoch 1`, `epoch 2`, or `100`, `200`, `300`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from memdiag.recording.parsing.column_meaning import Part, is_setting, recognise

_AT_LEAST = 4
_MOMENT = re.compile(
    r"\s*(?P<word>[^0-9]{0,24}?)[ #_-]*(?P<number>[0-9][0-9,_]*(?:\.[0-9]+)?)"
    r"[ ]?(?P<unit>[a-z]*)\s*"
)


def axis_of(names: Sequence[str], above: str) -> str:
    """What the names count: one word, if any, with increasing numbers; "" if they are not moments,
    but may be settings. Unknown words are moments only at equal distances.

    above: the name of the column before them, which may say it.
    """
    found = [moment for name in names if (moment := _MOMENT.fullmatch(name)) is not None]
    if len(found) < max(_AT_LEAST, len(names)):
        return ""
    words = {(moment["word"].strip().lower(), moment["unit"]) for moment in found}
    steps = {round(b - a, 6) for a, b in pairwise(map(position, names))}
    if len(words) > 1 or min(steps) <= 0 or is_setting(above):
        return ""
    word, unit = words.pop()
    candidates = (word, above.strip(), f"time ({unit})" if unit else "")
    known = next((name for name in candidates if recognise(name).part is Part.AXIS), "")
    return known or ("sample" if len(steps) == 1 else "")


def position(name: str) -> float:
    """The number in the name of a moment."""
    found = _MOMENT.fullmatch(name)
    return float(re.sub("[,_]", "", found["number"])) if found else float("nan")
