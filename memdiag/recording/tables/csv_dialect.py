"""The layout of a text table: its delimiter, its header, the lines before it."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, dropwhile, islice, pairwise, takewhile

from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.moments import axis_of
from memdiag.recording.tables.cells_of_lines import (
    are_sentences,
    is_moment,
    is_number,
    is_prose_above_names,
    of_a_run,
    recognisable,
)
from memdiag.recording.tables.dated_sections import is_date

WHITESPACE, WIDE, MOMENTS = " ", "  ", " T"
_DELIMITERS = (",", "\t", ";", "|", WHITESPACE, MOMENTS)
_BLANKS_BETWEEN = (WHITESPACE, MOMENTS)
_LINES_LOOKED_AT = 60
# Characters of a row with a text in quotes. Heuristic.
_LONGEST_ROW = 1 << 16
_COUNT_AND_VALUE = _NAME_AND_VALUE = 2
# Columns at the end of a line that may have blanks in their cells.
_TEXTS = frozenset({"cmd", "command", "args", "name", "time", "date", "message", "status"})
_USUAL = 0.7
# Of a mail, above the names of columns.
_LINES_OF_PROSE = 6
# Rows that make a table among prose, or whose evenly spaced first numbers are steps.
_FEWEST_ROWS = 4
# An increase belongs to the cell before it: `206638 (+10974)`.
_BLANK_END = r"[ \t]+(?![ \t]|\([+-])"
CELL_END = {
    WHITESPACE: _BLANK_END,
    WIDE: r"[ \t]{2,}",
    MOMENTS: rf"(?:(?<!-[0-9]{{2}}-[0-9]{{2}})|(?! [0-9]{{2}}:[0-9]{{2}})){_BLANK_END}",
}
_BLANK = {delimiter: re.compile(end) for delimiter, end in CELL_END.items()}
_SIZE_UNIT = re.compile(r"[0-9]\s*((?:[KMGT]i?)?B)", re.I)
_CELL_ENDS = re.compile(r"[,;|\s]+")
_COMMAND = re.compile(r"\$[({A-Za-z]|\bdo\b.*\bdone\b")  # of a shell
_SEPARATOR = re.compile(r"\"?sep=[,;|\t]\"?\s*")
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the columns are.

    delimiter: one character; `WHITESPACE` means any run of blanks, `WIDE` of more than one, and
      `MOMENTS` any that is not between a date and its time.
    names: of the columns, () if the table has no header.
    skip_lines: lines before the first row.
    columns: number of columns of the rows.
    """

    delimiter: str
    names: tuple[str, ...]
    skip_lines: int
    columns: int


@lru_cache(maxsize=1)  # several formats ask for the layout of one head
def find_layout(head: str, *, cut_off: bool) -> Layout | None:
    """The layout of the table that `head` begins with, None if it is not a table.

    cut_off: the last line of `head` may be incomplete.
    """
    lines = head.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if cut_off and len(lines) > 1:
        lines.pop()
    filled = ((at, row) for at, row in _rows_of(lines) if row.strip() and not _comment(row))
    rows = list(islice(filled, _LINES_LOOKED_AT))
    numbers = [line.strip() for _, line in rows]
    if numbers and all(map(_THOUSANDS.fullmatch, numbers)) and not _counts_evenly(numbers):
        return _single_column(rows)
    found = [layout for d in _DELIMITERS if (layout := _with_delimiter(rows, d)) is not None]
    # "Step;RSS" above "7;1000,5": a comma would leave the first column without a name, or all, or
    # would take the first row for the names.
    named = [layout for layout in found if layout.names[:1] not in {(), ("",)}]
    of_runs = (layout for layout in named if of_a_run(list(layout.names)))
    if (layout := next(of_runs, next(iter(named), None))) is not None:
        return layout
    if found:  # perhaps with other lines between the names and the numbers
        of_moments = (layout for layout in found if layout.delimiter == MOMENTS and layout.names)
        return _in_prose(rows) or next(of_moments, found[0])
    return _single_column(rows) or _in_prose(rows) or _before_text(rows)


def _counts_evenly(lines: list[str]) -> bool:
    """Return True for steps and values, `10,504` below `0,500`, which look like thousands."""
    pairs = [line.split(",") for line in lines]
    if len(pairs) < _FEWEST_ROWS or any(len(pair) != _COUNT_AND_VALUE for pair in pairs):
        return False
    gaps = {int(after) - int(before) for (before, _), (after, _) in pairwise(pairs)}
    return len(gaps) == 1 and gaps != {0} and len({value for _, value in pairs}) > 1


def _rows_of(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Each row with the number of its last line: a cell in quotes may have several lines."""
    at = 0
    while at < len(lines):
        end = _end_of_row(lines, at)
        yield end, "\n".join(lines[at : end + 1])
        at = end + 1


def _end_of_row(lines: list[str], start: int) -> int:
    """The line in which the quotes of this line are closed; the line itself if none is near."""
    is_open, length = False, 0
    for end in range(start, len(lines)):
        is_open = _ends_within_quotes(lines[end], is_open=is_open)
        length += len(lines[end])
        if not is_open:
            return end
        if length > _LONGEST_ROW:
            break
    return start


def _ends_within_quotes(text: str, *, is_open: bool) -> bool:
    """Return True if the last cell begins with a quote that is not closed."""
    was_open = not is_open  # the first cell begins as one behind quotes
    for before in text.split('"')[:-1]:
        opens = not is_open and (before[-1] in _DELIMITERS if before else was_open)
        was_open, is_open = is_open, opens
    return is_open


def is_header_alone(head: str) -> bool:
    """Return True if the only line has the names of an axis and of memory."""
    lines = [line for line in head.splitlines() if line.strip()]
    return len(lines) == 1 and any(
        not any(is_number(name.rstrip(",;.")) for name in names) and of_a_run(names)
        for names in (split_line(lines[0].lstrip("# "), delimiter) for delimiter in _DELIMITERS)
    )


def split_line(line: str, delimiter: str) -> list[str]:
    """The cells of one line."""
    if delimiter in _BLANK:
        return _BLANK[delimiter].split(line.strip())
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return line.split(delimiter)


def _comment(line: str) -> bool:
    """Return True for a remark, a command or Excel's `sep=;`; a header may begin with #, too."""
    if _SEPARATOR.fullmatch(line):
        return True
    if not line.startswith("#"):
        return False
    return _COMMAND.search(line) is not None or not recognisable(_CELL_ENDS.split(line[1:]))


def _with_delimiter(rows: list[tuple[int, str]], delimiter: str) -> Layout | None:
    cells = _cells(rows, delimiter)
    widths = Counter(len(row) for _, row in cells)
    if not widths:
        return None
    width, often = widths.most_common(1)[0]
    if width < 2 or often < max(1, _USUAL * len(cells)):
        return None
    cells = [(at, _without_mark(row, width, delimiter)) for at, row in cells]
    alike = [n for n, (_, row) in enumerate(cells) if len(row) in {width, width - 1}]
    above = _pairs_above([cells[n][1] for n in alike])
    first = alike[above or _lines_of_prose([cells[n][1] for n in alike[:_LINES_OF_PROSE]])]
    first += _padded([row for _, row in cells[first:]])
    if delimiter in _BLANKS_BETWEEN and first:
        spread = _BLANKS.split(rows[first - 1][1].strip())  # "epoch  gpu used  peak"
        if len(spread) == width and not any(map(is_number, spread)):
            first -= 1
            cells[first] = rows[first][0], spread
    body = [row for _, row in cells[first + 1 :] if len(row) == width]
    header = cells[first][1]
    if any(is_number(name) for name in header) and not _names_moments(header, body):
        return _headerless(cells, first, width, delimiter)
    if body and _are_groups(header, body[0]):
        header = _below_groups(header, body[0])
        first = next(n for n, (_, row) in enumerate(cells) if n > first and len(row) == width)
        body = body[1:]
    if not body or not _mostly_numbers(body, width) or are_sentences(header, body, delimiter):
        return None
    names = _completed(header, body) if len(header) < width else header
    if delimiter not in _BLANKS_BETWEEN:
        is_markdown = delimiter == "|" and _is_rule(body[0])  # that is not a series
        return None if is_markdown else _named(names, cells[first][0] + 1, width, delimiter)
    if not _is_spaced_table(header, names, body) or (delimiter == MOMENTS and _is_title(names)):
        return None
    index = _name_of_index(names, cells[first + 1][1])
    names = [*index, *names[len(index) :]]
    return _named(names, cells[first + len(index)][0] + 1, width, delimiter)


def _is_title(names: list[str]) -> bool:
    """Return True for a sentence of as many words as there are columns, one of them of memory."""
    return bool(names[0]) and not of_a_run(names)


def _name_of_index(names: list[str], below: list[str]) -> list[str]:
    """The name of the first column, which pandas prints alone below the others; [] if it is not."""
    is_name = names[0] == "" and len(below) == 1 and not is_number(below[0])
    return below if is_name else []


def _cells(rows: list[tuple[int, str]], delimiter: str) -> list[tuple[int, list[str]]]:
    """The cells of the rows, without the dates between the tables of a loop."""
    cells = [(at, split_line(line, delimiter)) for at, line in rows]
    if delimiter in _BLANKS_BETWEEN:
        return cells
    return [(at, row) for at, row in cells if len(row) > 1 or not is_date(row[0])]


def _without_mark(row: list[str], width: int, delimiter: str) -> list[str]:
    """The names behind the mark of a comment, `# step loss rss_MiB`; another row as it is."""
    is_mark = delimiter in _BLANKS_BETWEEN and row[0] == "#" and len(row) == width + 1
    return row[1:] if is_mark else row


def _pairs_above(rows: list[list[str]]) -> int:
    """How many of the first rows are a name and its value each, as exports of monitoring services
    have them above the names of the columns: below these each row begins with a number or a time.
    """
    above = list(takewhile(lambda row: not is_number(row[0]), rows))
    at = len(above) - 1
    if at < 1 or not of_a_run(above[at]) or any(map(is_number, above[at])):
        return 0
    are_pairs = all(sum(map(bool, row)) == _NAME_AND_VALUE for row in above[:at])
    are_readings = len(rows) > len(above) and all(is_number(row[0]) for row in rows[at + 1 :])
    return at if are_pairs and are_readings and not of_a_run(above[0]) else 0


def _lines_of_prose(rows: list[list[str]]) -> int:
    """How many of the first rows are prose, cut at its commas, above the names of columns."""
    if len(rows) > 1 and is_prose_above_names(*rows[:2]):
        return 1
    named = (at for at, row in enumerate(rows) if recognisable(row) or any(map(is_number, row)))
    at = next(named, 0)
    return at if at and of_a_run(rows[at]) and not any(map(is_number, rows[at])) else 0


def _padded(rows: list[list[str]]) -> int:
    """The number of lines of text above a header, which a spreadsheet fills up with empty cells. A
    single one may have names of groups.
    """
    above = list(takewhile(lambda row: "" in row, rows))
    below = rows[len(above)] if len(above) < len(rows) else []
    is_header = recognisable(below) and not any(map(is_number, below))
    is_group = len(above) == 1 and sum(map(bool, above[0])) > 1
    return len(above) if is_header and not is_group else 0


def _completed(header: list[str], body: list[list[str]]) -> list[str]:
    """The header with an empty name for the row names that R's write.table prints, or for what rows
    have behind their last named cell, if there would be no numbers below the names of memory.
    """
    before, behind = ["", *header], [*header, ""]
    return behind if _fits(behind, body) and not _fits(before, body) else before


def _is_spaced_table(header: list[str], names: list[str], body: list[list[str]]) -> bool:
    """Return True unless these are sentences: most cells below some name of memory are numbers.

    names: the header, and a name for row numbers.
    """
    if not _are_names(header) or (len(header) < len(names) and not _counts(body)):
        return False
    places = [at for at, name in enumerate(names) if recognise(name).part is Part.METRIC]
    return any(2 * sum(is_number(row[at]) for row in body) >= len(body) for at in places)


def _fits(names: list[str], body: list[list[str]]) -> bool:
    places = [at for at, name in enumerate(names) if recognise(name).part is Part.METRIC]
    return all(any(is_number(row[at]) for row in body) for at in places)


def _names_moments(header: list[str], body: list[list[str]]) -> bool:
    """Return True for `metric,1,2,3,4` above rows that begin with names of metrics."""
    return bool(axis_of(header[1:], header[0])) and recognisable([row[0] for row in body])


def _are_groups(above: list[str], below: list[str]) -> bool:
    """Return True for `"memory usage",,,"cpu",` above `used,free,cach,usr,sys`: each name stands
    for the columns up to the next.
    """
    return "" in above[1:] and "" not in below and not any(map(is_number, below))


def _below_groups(above: list[str], below: list[str]) -> list[str]:
    groups: Iterable[str] = accumulate(above, lambda group, name: name or group)
    return [
        name if recognise(name).part is Part.AXIS else f"{group} {name}".strip()
        for group, name in zip(groups, below, strict=False)
    ]


def _counts(rows: list[list[str]]) -> bool:
    """Return True if the first cells are row numbers or dates with times, which pandas prints
    without a name.
    """
    if all(" " in row[0] and is_moment(row[0]) for row in rows):
        return True
    numbers = [int(row[0]) for row in rows if row[0].isdecimal()]
    return len(numbers) * 2 > len(rows) and all(a < b for a, b in pairwise(numbers))


_BLANKS = re.compile(r"\s{2,}")
# What Windows calls the column of times, with the time zone: "(PDH-CSV 4.0) (UTC)(0)".
_PDH = ("(PDH-CSV", "(PDH-TSV")
_NO_NAME = re.compile(r"[(\[].*[)\]]|.*:|.*\(\)|(?!\.{3}$)[^\w%#]+")


def _are_names(header: list[str]) -> bool:
    """Return True for names separated by blanks. "RSS (MB)", "Memory usage:" and "before -> after"
    are one name.
    """
    return recognisable(header) and not any(map(_NO_NAME.fullmatch, header[1:]))


def _named(header: list[str], skip: int, width: int, delimiter: str) -> Layout:
    names = [" ".join(name.split()) for name in header]
    names = [name if name == "#" else name.lstrip("#").strip().strip('"') for name in names]
    names = ["time" if name.startswith(_PDH) else name for name in names]
    return Layout(delimiter=delimiter, names=tuple(names), skip_lines=skip, columns=width)


def _headerless(
    cells: list[tuple[int, list[str]]], first: int, width: int, delimiter: str
) -> Layout | None:
    """The layout of rows of only numbers. With blanks as delimiter all cells must be numbers."""
    alike = [row for _, row in cells if len(row) == width]
    numbers = [all(is_number(cell) or not cell for cell in row) for row in alike]
    if delimiter in _BLANKS_BETWEEN and not all(numbers):
        return None
    if not _mostly_numbers(alike, width):
        return None
    at, row = cells[first]
    skip = at - sum(cell.count("\n") for cell in row)
    return Layout(delimiter=delimiter, names=(), skip_lines=skip, columns=width)


def _mostly_numbers(rows: list[list[str]], width: int) -> bool:
    """Return True if at least half of the filled cells of some column are numbers."""
    for column in range(width):
        filled = [row[column] for row in rows if row[column]]
        if filled and sum(map(is_number, filled)) * 2 >= len(filled):
            return True
    return False


def _in_prose(rows: list[tuple[int, str]]) -> Layout | None:
    """A table of memory over steps or time among other lines, by its header: at least half of the
    lines with digits are its rows. (A summary of a model's layers has no steps.)"""
    with_digits = sum(any(map(str.isdigit, line)) for _, line in rows)
    for first, (at, line) in enumerate(rows):
        for delimiter in (*_DELIMITERS, WIDE):
            header = split_line(line, delimiter)
            if len(header) < 2 or any(map(is_number, header)):
                continue
            below = (split_line(text, delimiter) for _, text in rows[first + 1 :])
            body = _rows_at_the_start(dropwhile(_is_rule, below), len(header))
            if len(body) < _FEWEST_ROWS or 2 * len(body) < with_digits:
                continue
            if of_a_run(_with_units(header, body[0])):
                return _named(header, at + 1, len(header), delimiter)
    return None


def _before_text(rows: list[tuple[int, str]]) -> Layout | None:
    """A table whose last column is text with blanks in it, such as a command or a date: the cells
    before it are one for each name. The header may be printed again.
    """
    cells = [(at, line.split()) for at, line in rows]
    at, header = next(((at, row) for at, row in cells if recognisable(row)), (0, []))
    body = [row for below, row in cells if below > at and row != header]
    if not header or header[-1].lower() not in _TEXTS or any(map(is_number, header)):
        return None
    places = [n for n, name in enumerate(header) if recognise(name).part is Part.METRIC]
    fitting = [len(row) > len(header) and all(is_number(row[n]) for n in places) for row in body]
    if len(body) < _FEWEST_ROWS or sum(fitting) < _USUAL * len(body):
        return None
    return _named(header[:-1], at + 1, len(header) - 1, WHITESPACE)


def _with_units(names: list[str], cells: list[str]) -> list[str]:
    """The names with the units of memory in the cells: `before (MiB)` above `181.5 MiB`."""
    units = [_SIZE_UNIT.search(cell) for cell in cells]
    return [f"{n} ({u[1]})" if u else n for n, u in zip(names, units, strict=True)]


def _rows_at_the_start(lines: Iterable[list[str]], width: int) -> list[list[str]]:
    return list(takewhile(lambda cells: len(cells) == width and all(map(is_number, cells)), lines))


def _is_rule(cells: list[str]) -> bool:
    return all(set(cell) <= set("-=+|: ") for cell in cells)


def _counts_first(lines: Iterable[str]) -> bool:
    """Return True for lines such as `9 510.03`: a count and a value, not one number."""
    cells = [line.split() for line in lines]
    if not cells or any(len(two) != _COUNT_AND_VALUE for two in cells):
        return False
    if not all(count.isdecimal() and is_number(value) for count, value in cells):  # "800 MB"
        return False
    counts = [int(two[0]) for two in cells]
    return all(a < b for a, b in pairwise(counts))


def _single_column(rows: list[tuple[int, str]]) -> Layout | None:
    """One column of numbers, with or without a name above it."""
    if not rows:
        return None
    at, name = rows[0]
    if _counts_first(line for _, line in rows[1:]):
        return None
    if rows[0][1].strip():  # printed again with each number
        rows = [rows[0], *(row for row in rows[1:] if row[1].strip() != name.strip())]
    numbers = [is_number(line.strip()) for _, line in rows]
    if all(numbers):
        return Layout(delimiter="\t", names=(), skip_lines=at, columns=1)
    if len(rows) > 1 and all(numbers[1:]) and recognisable([name]):
        return Layout(delimiter="\t", names=(name.strip(),), skip_lines=at + 1, columns=1)
    return None
