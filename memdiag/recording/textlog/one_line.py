"""Readings that a sentence lists in one line: `RSS (MB) after each epoch: 1820 -> 2057 -> 2242`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.table import Table
from memdiag.recording.textlog.number_spans import NUMBER, SIZE_UNIT
from memdiag.values.measurements import AxisKind, Unit

_UNIT = rf"[ ]?(?:{SIZE_UNIT})(?![\w/])"
_REMARK = r" ?\([^()\n]{1,40}\)"  # `1.20 GB (step 0) -> 2.05 GB (step 1000)`
_AMOUNT = rf"{NUMBER}(?:{_UNIT})?(?:{_REMARK})?"
# Fewer tell of a change, or of a few things. Heuristic.
_OTHERS_AT_LEAST = 7
_ARROW = r"\s{0,3}(?:-{1,2}>|→|=>|⇒|➜)\s{0,3}"
_LISTED = re.compile(
    rf"(?<![\w.,+-]){_AMOUNT}(?:(?P<arrow>{_ARROW}){_AMOUNT}(?:{_ARROW}{_AMOUNT})"
    rf"{{{_OTHERS_AT_LEAST - 1},}}|(?:[,;]\s{{1,3}}{_AMOUNT}){{{_OTHERS_AT_LEAST},}})"
    r"(?![\w.]?\w| ?%)"
)
_EACH = re.compile(rf"({NUMBER})({_UNIT})?")
_LONGEST_NAME = 200
_CLAUSE = re.compile(r"[.,:;!?]\s+(?!in [KMGT]i?B\b)")
_IN_UNIT = re.compile(r"(?:[(\[]|\bin )?\b([KMGT]i?B|bytes)\b[)\]]?")
# `RSS after each epoch`, `memory per step`.
_WHEN = re.compile(r"(?i)\s+(?:after|at|over|per|every|each)(?: (?:each|every|the))? ([a-z]+)$")
_IN_TURN = frozenset({AxisKind.STEP, AxisKind.EPOCH, AxisKind.REQUEST})


def has_listed(source: Source) -> bool:
    """Return True if a short text lists readings of memory, once."""
    return source.whole and len(list(_listed(source))) == 1


def read_listed(source: Source) -> Table:
    """The readings in their order."""
    ((name, amounts),) = _listed(source)
    return Table(names=(name,), columns=(pl.Series(amounts, dtype=pl.String),), first_line=None)


def _listed(source: Source) -> Iterator[tuple[str, list[str]]]:
    """Names of memory in front of numbers, and these with their unit: others may be steps.
    What commas separate may be of several things, unless the name says that it is in turn.
    """
    text = source.head()
    for found in _LISTED.finditer(text):
        line = text[: found.start()].rstrip().rpartition("\n")[2][-_LONGEST_NAME:]
        about = _CLAUSE.split(line.rstrip(" \t:=[("))[-1].strip(" \t*_`>#-")
        label = " ".join(_IN_UNIT.sub(" ", about).split()).rstrip(", ")
        when = _WHEN.search(label)
        is_in_turn = when is not None and recognise(when[1]).axis in _IN_TURN
        name = label[: when.start()] if when is not None and is_in_turn else label
        meaning = recognise(name)
        is_level = meaning.part is Part.METRIC and not meaning.capacity
        amounts = _with_unit(found[0], _IN_UNIT.search(about))
        are_sizes = meaning.unit is Unit.BYTES or not amounts[-1][-1].isdigit()
        if is_level and are_sizes and (is_in_turn or found["arrow"]):
            yield name, amounts


def _with_unit(amounts: str, named: re.Match[str] | None) -> list[str]:
    """Each amount with its unit, or else that of the last one or of the name."""
    each = _EACH.findall(re.sub(_REMARK, "", amounts))
    unit = each[-1][1] or (f" {named[1]}" if named is not None else "")
    return [number + (own or unit) for number, own in each]
