"""What the positions and the fill levels in a log's lines count up to: 40 in `Epoch 3/40`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memdiag.recording.parsing.column_meaning import Part
from memdiag.recording.textlog.discover_fields import Field
from memdiag.values.measurements import AxisKind

_TOTAL = re.compile(r"/([0-9]+)(?![0-9.])")
_CAPACITY = re.compile(r"\s?(?:/|of)\s?([0-9][0-9,]*)(?![0-9.])")


def totals(lines: Iterable[str], fields: Sequence[Field]) -> dict[str, float]:
    """The totals of axes and fill levels, by their names, where all lines say the same. Beside
    epochs, the total of steps is the length of an epoch.
    """
    lines = list(lines)
    axes = [field for field in fields if field.meaning.part is Part.AXIS]
    epochs = [axis for axis in axes if axis.meaning.axis is AxisKind.EPOCH]
    fills = [field for field in fields if field.meaning.part is Part.FILL]
    found = {axis.name: _totals(axis, lines, _TOTAL) for axis in epochs or axes}
    found |= {fill.name: _totals(fill, lines, _CAPACITY) for fill in fills}
    return {name: seen.pop() for name, seen in found.items() if len(seen) == 1}


def _totals(field: Field, lines: Sequence[str], total: re.Pattern[str]) -> set[float]:
    places = ((line, field.find(line)) for line in lines)
    behind = (total.match(line, place[0][1]) for line, place in places if place is not None)
    return {float(found[1].replace(",", "")) for found in behind if found is not None}
