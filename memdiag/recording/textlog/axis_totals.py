"""What the positions and the fill levels in a log's lines count up to: 40 in `Epoch 3/40`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memdiag.recording.parsing.column_meaning import Part
from memdiag.recording.parsing.column_names import take_apart
from memdiag.recording.parsing.column_vocabulary import STORES
from memdiag.recording.textlog.discover_fields import Field
from memdiag.values.measurements import AxisKind

_TOTAL = re.compile(r"/([0-9]+)(?![0-9.])")
_STATED = re.compile(
    r"([A-Za-z][A-Za-z_.-]{2,60}(?: [A-Za-z]{2,20})?)[\"']?\s?[:=]\s?([0-9][0-9_,]{0,24})"
)
_STATED_WITHIN = 1 << 16
_LIMITS = frozenset({"max", "maximum", "capacity", "limit", "maxsize", "maxlen"})
_SIZES = frozenset({"size", "len", "length", "count", "items", "entries"})
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


def capacities(text: str, fields: Sequence[Field]) -> dict[str, float]:
    """What a text says once of the capacity of fill levels, by their names: `max_replay_size:
    1000000` of `Replay Size`.
    """
    stated: dict[str, set[float]] = {}
    for found in _STATED.finditer(text[:_STATED_WITHIN]):
        words = take_apart(found[1]).words
        if not _LIMITS.isdisjoint(words) and not STORES.isdisjoint(words):
            owner = " ".join(word for word in words if word not in _LIMITS | _SIZES)
            stated.setdefault(owner, set()).add(float(re.sub("[_,]", "", found[2])))
    fills = {field.name for field in fields if field.meaning.part is Part.FILL}
    owners = {
        " ".join(word for word in take_apart(fill).words if word not in _SIZES): fill
        for fill in fills
    }
    return {
        owners[one]: seen.pop() for one, seen in stated.items() if one in owners and len(seen) == 1
    }


def _totals(field: Field, lines: Sequence[str], total: re.Pattern[str]) -> set[float]:
    places = ((line, field.find(line)) for line in lines)
    behind = (total.match(line, place[0][1]) for line, place in places if place is not None)
    return {float(found[1].replace(",", "")) for found in behind if found is not None}
