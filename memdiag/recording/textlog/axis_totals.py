"""What the positions in a log's lines count up to: 40 in `Epoch 3/40`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memdiag.recording.parsing.column_meaning import Part
from memdiag.recording.textlog.discover_fields import Field
from memdiag.values.measurements import AxisKind

_TOTAL = re.compile(r"/([0-9]+)(?![0-9.])")


def totals(lines: Iterable[str], fields: Sequence[Field]) -> dict[str, float]:
    """The totals of axes, by their names, where all lines say the same. Beside epochs, the total of
    steps is the length of an epoch.
    """
    lines = list(lines)
    axes = [field for field in fields if field.meaning.part is Part.AXIS]
    epochs = [axis for axis in axes if axis.meaning.axis is AxisKind.EPOCH]
    found = {axis.name: _totals(axis, lines) for axis in epochs or axes}
    return {name: seen.pop() for name, seen in found.items() if len(seen) == 1}


def _totals(axis: Field, lines: Sequence[str]) -> set[float]:
    places = ((line, axis.find(line)) for line in lines)
    behind = (_TOTAL.match(line, place[0][1]) for line, place in places if place is not None)
    return {float(total[1]) for total in behind if total is not None}
