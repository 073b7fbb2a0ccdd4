"""What the cells of a line show: numbers, names of columns, or a sentence cut at its commas."""

from __future__ import annotations

import re
from itertools import pairwise

from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.number_marks import DIGITS

# Words of the longest name of a column. Heuristic.
_WORDS_OF_NAME = 8
# A printed number, perhaps with a unit or a percent sign: 17,412 MB; 2.6G; 1e-3; inf.
NUMBER = re.compile(
    rf"[\s*`~\"]*[-+]?(?:{DIGITS}|\.[0-9]+|nan|inf)(?:[eE][-+]?[0-9]+)?"
    r"\s*[A-Za-z%]{0,5}[\s*`\"]*",
    re.I,
)
# A float has at most 24 characters; with blanks, quotes and a unit around it. Heuristic.
_LONGEST_NUMBER = 100
_AMOUNT = re.compile(r"[0-9]\s*[KMGT]i?B\b", re.I)
_SIZE_BEGINS = re.compile(r"[0-9]{1,3}[ ]?[KMGTkmgt]i?[BbOo]?\b")
_OPTION = re.compile(r"(?:^|\s)--[a-z]")  # `nvidia-smi --query-gpu=index`
_OPEN_BRACKET = re.compile(r"\[[^\]]*$")
_DATE = re.compile(
    r"\s*\"?(?:[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}(?:[T ][0-9:.,+Z-]+)?"
    r"|[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:[0-9]{4}|[0-9]{2})(?:[ ,T]+[0-9:.]+(?:\s*[AaPp][Mm])?)?"
    r"|[0-9]{1,2}:[0-9]{2}:[0-9.,]+|[0-9]{1,2}:[0-9]{2}\s*[AaPp][Mm])\"?\s*"
)


def is_number(cell: str) -> bool:
    """Return True if the cell is a number, a date or a time of day."""
    if len(cell) > _LONGEST_NUMBER:  # the patterns would take quadratic time
        return False
    return NUMBER.fullmatch(cell) is not None or _DATE.fullmatch(cell) is not None


def is_moment(cell: str) -> bool:
    """Return True if the cell is a date or a time of day."""
    return is_number(cell) and NUMBER.fullmatch(cell) is None


def recognisable(names: list[str]) -> bool:
    """Return True if one of the names is a metric's."""
    return any(recognise(name).part is Part.METRIC for name in names)


def of_a_run(header: list[str]) -> bool:
    return {Part.METRIC, Part.AXIS} <= {recognise(name).part for name in header}


def is_prose_above_names(above: list[str], below: list[str]) -> bool:
    """Return True for a sentence, cut at its commas, above the names of columns."""
    is_prose = any(len(cell.split()) > _WORDS_OF_NAME for cell in above)
    are_names = all(0 < len(cell.split()) <= _WORDS_OF_NAME for cell in below)
    return is_prose and are_names and not any(map(is_number, below))


def are_sentences(header: list[str], rows: list[list[str]], delimiter: str) -> bool:
    """Return True for lines that are cut at their commas: an amount, a part of a command or the end
    of a clause is above them, the first cell is a part of what brackets hold, most have sizes
    that commas cut, or most cells below the names of memory have a name of their own: `rss=812`.
    """
    if _is_clause(header, rows) or (delimiter == "," and _cuts_sizes(header, rows)):
        return True
    if any(map(_AMOUNT.search, header)) or has_command(header):
        return True
    if _OPEN_BRACKET.match(header[0]):
        return True
    places = [at for at, name in enumerate(header) if recognise(name).part is Part.METRIC]
    cells = [row[at] for row in rows for at in places if at < len(row)]
    return bool(cells) and 2 * sum("=" in cell for cell in cells) > len(cells)


def has_command(cells: list[str]) -> bool:
    """Return True if a cell is a part of a command that is cut at its commas."""
    return any(map(_OPTION.search, cells))


def _is_clause(header: list[str], rows: list[list[str]]) -> bool:
    """Return True for what ends in a colon, `What I uploaded, in MB:`, but for names of a run, and
    for a single name that is not of memory, or above words, where most rows have sizes with units.
    """
    ends = [cell.rstrip().endswith(":") for cell in header]
    if ends[-1] and not any(ends[:-1]):
        return not of_a_run(header)
    if len(header) > 1 or (recognisable(header) and any(is_number(row[0]) for row in rows)):
        return False
    return 2 * sum(any(map(_AMOUNT.search, row)) for row in rows) > len(rows)


def _cuts_sizes(header: list[str], rows: list[list[str]]) -> bool:
    """Return True if most rows have a size that its comma cuts in two, `3,2 GB`, `643,187 K`, and
    the header has no names of a run.
    """
    cut = sum(any(map(_has_comma_size, pairwise(row))) for row in rows)
    return 2 * cut > len(rows) and not of_a_run(header)


def _has_comma_size(cells: tuple[str, str]) -> bool:
    return cells[0][-1:].isdigit() and _SIZE_BEGINS.match(cells[1]) is not None
