"""A picture in characters: memory over steps, with onset, plateau and limits."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from memdiag.report.picture.model import Mark, MarkKind, Picture, finite, vertical_range
from memdiag.report.plotting import axis_ticks
from memdiag.report.plotting.braille_canvas import Canvas
from memdiag.report.text import wording
from memdiag.report.text.text_layout import INDENT
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict

_ROWS = 8
_Y_INTERVALS = 4
_CELLS_PER_X_MARK = 9
# Of the phases: adjacent ones differ without color, too.
_PHASE_STYLES = ("reverse", "dim reverse", "underline", "bold reverse")
# The marks that are drawn; the curve takes the style, if there is one, from there on.
_STYLES = {
    MarkKind.PLATEAU: wording.STYLES[Verdict.STABLE],
    MarkKind.ONSET: wording.STYLES[Verdict.LEAK],
    MarkKind.USER: "",
}
DRAWN_MARKS = frozenset(_STYLES)


class _Strokes(NamedTuple):
    """The characters of the frame and of the second curve."""

    tick: str
    side: str
    corner: str
    floor: str
    floor_tick: str
    mark: str
    level: str
    behind: str


_DRAWN = _Strokes(*"┤│└─┬┊┄·")
_TYPED = _Strokes(*"+|+-+!=o")


def behind_stroke(ascii_only: bool) -> str:
    """The character of the second curve, for a legend."""
    return (_TYPED if ascii_only else _DRAWN).behind


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """Maps the values of a plot to its cells."""

    left: float
    right: float
    bottom: float
    top: float
    canvas: Canvas
    behind: Canvas

    def column(self, x: float) -> int:
        """The column of cells that contains `x`."""
        return round(self._part_across(x) * (self.canvas.columns - 1))

    def row(self, value: float) -> int:
        """The row of cells, counted from the top, that contains `value`."""
        return round((1.0 - self._part_up(value)) * (self.canvas.rows - 1))

    def dot(self, x: float, value: float) -> tuple[int, int]:
        """The dot for a point; the value of a mark is in the middle of its cell."""
        wide, high = self.canvas.dots_per_cell
        across = self._part_across(x) * (self.canvas.columns - 1) * wide + (wide - 1) / 2
        up = self._part_up(value) * (self.canvas.rows - 1) * high + (high - 1) / 2
        return round(across), round(up)

    def _part_across(self, x: float) -> float:
        return (x - self.left) / ((self.right - self.left) or 1.0)

    def _part_up(self, value: float) -> float:
        return (value - self.bottom) / ((self.top - self.bottom) or 1.0)


def draw(
    picture: Picture, width: int, *, ascii_only: bool = False, most_rows: int | None = None
) -> list[Text]:
    """Lines of at most `width` cells; empty if there are fewer than two points.

    The first curve is a line; its highest readings and a second curve are drawn behind it, with one
    character per cell. most_rows: rows that the curve may fill; then the phases are drawn, too,
    in a line of their own.
    """
    points = finite(picture.curves[0].points) if picture.curves else []
    behind = finite((*picture.curves[0].tops, *_second(picture))) if points else []
    if len(points) < 2:
        return []
    everything = sorted([*points, *behind])
    intervals = _Y_INTERVALS if most_rows is None else max(1, min(_Y_INTERVALS, most_rows // 2))
    shown = [value for _, value in everything]
    bottom, top, distance = _vertical_range(picture, shown, intervals)
    values = axis_ticks.marks(bottom, top, distance)
    divisor, symbol = axis_ticks.memory_unit(picture.unit, top)
    numbers = axis_ticks.labels([value / divisor for value in values])
    names = [f"{number} {symbol}".rstrip() for number in numbers]
    gutter = max(map(len, names))
    rows_per_mark = max(2, round(_ROWS / (len(values) - 1)))
    if most_rows is not None:
        rows_per_mark = max(1, (most_rows - 1) // (len(values) - 1))
    rows = rows_per_mark * (len(values) - 1) + 1
    columns = width - gutter - INDENT - 2
    frame = _Frame(
        left=everything[0][0],
        right=everything[-1][0],
        bottom=bottom,
        top=top,
        canvas=Canvas(columns=columns, rows=rows, ascii_only=ascii_only),
        behind=Canvas(columns=columns, rows=rows, ascii_only=ascii_only),
    )
    for canvas, curve in ((frame.canvas, points), (frame.behind, behind)):
        for start, end in itertools.pairwise(frame.dot(x, value) for x, value in curve):
            canvas.line(start, end)
    strokes = _TYPED if ascii_only else _DRAWN
    by_row = dict(zip(range(rows - 1, -1, -rows_per_mark), names, strict=True))
    marks = [mark for mark in picture.curves[0].marks if mark.kind in _STYLES]
    drawn = (frame, strokes)
    body = [_row(picture, marks, drawn, at, by_row.get(at, "").rjust(gutter)) for at in range(rows)]
    blank = " " * (INDENT + gutter + 2)
    labels = _mark_labels(marks, frame, blank, strokes)
    floor = _floor(picture, frame, blank, strokes)
    band = [_band(picture, frame, blank)] if most_rows is not None and picture.phases else []
    return [*labels, *body, *floor, *band]


def _second(picture: Picture) -> Sequence[tuple[float, float]]:
    return picture.curves[1].points if len(picture.curves) > 1 else ()


def _band(picture: Picture, frame: _Frame, blank: str) -> Text:
    """The phase at each column, with its name where that fits."""
    columns = frame.canvas.columns
    names = [""] * columns
    for span in picture.phases:
        first, last = frame.column(span.start_x), frame.column(span.end_x)
        for column in range(max(0, first), min(columns, last + 1)):
            names[column] = printable(span.phase)
    different = sorted(set(names))
    line = Text(blank)
    for name, cells in itertools.groupby(names):
        room = len(list(cells))
        style = _PHASE_STYLES[different.index(name) % len(_PHASE_STYLES)] if name else ""
        line.append(set_cell_size(name, room), style)
    return line


def _vertical_range(
    picture: Picture, values: Sequence[float], most_intervals: int
) -> tuple[float, float, float]:
    """Round limits that contain the values, and the distance of the marks."""
    levels = (level.value for level in picture.levels)
    low, high = vertical_range([*values, *levels], picture.least_span)
    whole = picture.unit is not Unit.PERCENT
    for intervals in range(most_intervals, 0, -1):
        distance = axis_ticks.spacing(high - low, intervals, whole=whole)
        bottom = math.floor(low / distance + 1e-9) * distance
        top = max(math.ceil(high / distance - 1e-9) * distance, bottom + distance)
        if round((top - bottom) / distance) <= most_intervals:
            break
    return bottom, top, distance


def _row(
    picture: Picture, marked: Sequence[Mark], drawn: tuple[_Frame, _Strokes], row: int, name: str
) -> Text:
    """name: of the value at this row, in the width of the gutter."""
    frame, strokes = drawn
    line = Text(" " * INDENT + name + " " + (strokes.tick if name.strip() else strokes.side))
    drawn_row, behind_row = frame.canvas.row(row), frame.behind.row(row)
    level = _level_at(picture, frame, row, strokes) or " " * len(drawn_row)
    cells = [
        glyph if glyph != " " else back if other == " " else strokes.behind
        for glyph, other, back in zip(drawn_row, behind_row, level, strict=True)
    ]
    places = [(frame.column(mark.x), mark) for mark in marked]
    marks = {column: mark for column, mark in places if 0 <= column < len(cells)}
    for column in marks:
        if cells[column] in {" ", strokes.level}:
            cells[column] = strokes.mark
    begin = len(line)
    line.append("".join(cells))
    styled = {column: _STYLES[mark.kind] for column, mark in marks.items() if _STYLES[mark.kind]}
    for first, end in itertools.pairwise([*sorted(styled), len(drawn_row)]):
        for run in re.finditer("[^ ]+", drawn_row[first:end]):
            line.stylize(styled[first], begin + first + run.start(), begin + first + run.end())
    line.rstrip()
    return line


def _level_at(picture: Picture, frame: _Frame, row: int, strokes: _Strokes) -> str:
    """The dashes of the level in this row with its label, or ""."""
    for level in picture.levels:
        if frame.row(level.value) == row:
            label = f" {level.label} "
            if cell_len(label) == len(label) and len(label) + 4 < frame.canvas.columns:
                return (strokes.level * 2 + label).ljust(frame.canvas.columns, strokes.level)
            return strokes.level * frame.canvas.columns
    return ""


def _mark_labels(marks: Sequence[Mark], frame: _Frame, blank: str, strokes: _Strokes) -> list[Text]:
    """A line above the plot for each mark: its label is right of its stroke, or left of it."""
    columns = frame.canvas.columns
    places = [(frame.column(mark.x), mark) for mark in marks]
    lines = []
    for at, (place, mark) in enumerate(places):
        later = {other for other, _ in places[:at]}
        room_right = columns - place - 2
        line = Text(blank)
        if cell_len(mark.label) <= room_right:
            line.append(_strokes_at(later, place, strokes) + strokes.mark + " ")
            line.append(mark.label, _STYLES[mark.kind])
        elif cell_len(mark.label) + 1 <= place:
            line.append(" " * (place - cell_len(mark.label) - 1))
            line.append(mark.label, _STYLES[mark.kind])
            line.append(" " + strokes.mark)
        else:
            line.append(" " * max(0, columns - cell_len(mark.label)))
            line.append(mark.label, _STYLES[mark.kind])
        lines.append(line)
    return lines


def _strokes_at(places: set[int], end: int, strokes: _Strokes) -> str:
    return "".join(strokes.mark if place in places else " " for place in range(end))


def _floor(picture: Picture, frame: _Frame, blank: str, strokes: _Strokes) -> list[Text]:
    """The horizontal axis: a line with ticks, and the numbers under it."""
    columns = frame.canvas.columns
    span = frame.right - frame.left
    divisor, symbol = axis_ticks.axis_unit(picture.axis, span)
    left, right = frame.left / divisor, frame.right / divisor
    whole = picture.axis is not AxisKind.SECONDS
    distance = axis_ticks.spacing(right - left, columns // _CELLS_PER_X_MARK, whole=whole)
    values = axis_ticks.marks(left, right, distance)
    places = [frame.column(value * divisor) for value in values]
    axis = "".join(strokes.floor_tick if at in places else strokes.floor for at in range(columns))
    numbers = _numbers(places, axis_ticks.labels(values), symbol or picture.axis_word, columns)
    return [
        Text(blank[:-1] + strokes.corner + axis),
        Text((blank + numbers).rstrip()),
    ]


def _numbers(places: Sequence[int], labels: Sequence[str], word: str, columns: int) -> str:
    """Labels centered under their ticks if they fit; the unit of the axis ends the line."""
    line = [" "] * columns
    tail = columns - cell_len(word) - 1
    free_from = 0
    for place, label in zip(places, labels, strict=True):
        start = max(0, place - len(label) // 2)
        if start >= free_from and start + len(label) <= tail:
            line[start : start + len(label)] = label
            free_from = start + len(label) + 1
    return "".join(line[: tail + 1]).ljust(tail + 1) + word
