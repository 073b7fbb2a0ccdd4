"""A plot of one series in characters: memory over steps, with marks.

It does not depend on verdicts: `annotations` chooses what is drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from memdiag.report.plotting import axis_ticks
from memdiag.report.plotting.braille_canvas import Canvas
from memdiag.report.text.text_layout import INDENT
from memdiag.values.measurements import AxisKind, Unit

_ROWS = 8
_Y_INTERVALS = 4
_CELLS_PER_X_MARK = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A vertical line at `x` on the axis; the curve takes `style` from there on."""

    x: float
    label: str
    style: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A horizontal line at `value`, in the unit of the curve."""

    value: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """trace: (x, value) points; points that are not finite are left out.

    axis_word: unit of the numbers under the axis ("step"); replaced by a time unit on an axis in
        seconds.
    least_span: the least that the vertical axis covers, so that noise does not look like growth.
    behind: points of a second curve, drawn with one character per cell where the first one is not.
    """

    trace: Sequence[tuple[float, float]]
    unit: Unit
    axis: AxisKind
    axis_word: str
    marks: Sequence[Mark] = ()
    levels: Sequence[Level] = ()
    least_span: float = 0.0
    behind: Sequence[tuple[float, float]] = ()


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


def draw(plot: Plot, width: int, *, ascii_only: bool = False) -> list[Text]:
    """Lines of at most `width` cells; empty if there are fewer than two points."""
    points, behind = _points(plot.trace), _points(plot.behind)
    if len(points) < 2:
        return []
    everything = sorted([*points, *behind])
    bottom, top, distance = _vertical_range(plot, [value for _, value in everything])
    values = axis_ticks.marks(bottom, top, distance)
    divisor, symbol = axis_ticks.memory_unit(plot.unit, top)
    numbers = axis_ticks.labels([value / divisor for value in values])
    names = [f"{number} {symbol}".rstrip() for number in numbers]
    gutter = max(map(len, names))
    rows_per_mark = max(2, round(_ROWS / (len(values) - 1)))
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
    body = [_row(plot, frame, at, by_row.get(at, ""), gutter, strokes) for at in range(rows)]
    blank = " " * (INDENT + gutter + 2)
    return [*_mark_labels(plot, frame, blank, strokes), *body, *_floor(plot, frame, blank, strokes)]


def _points(trace: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return sorted(p for p in trace if math.isfinite(p[0]) and math.isfinite(p[1]))


def _vertical_range(plot: Plot, values: Sequence[float]) -> tuple[float, float, float]:
    """Round limits that contain the values, and the distance of the marks."""
    low = min([*values, *(level.value for level in plot.levels)])
    high = max([*values, *(level.value for level in plot.levels)])
    lacking = max(0.0, plot.least_span - (high - low), (high == low) * max(abs(high), 1.0) * 0.1)
    never_below_zero = low >= 0
    low, high = low - lacking / 2, high + lacking / 2
    if never_below_zero and low < 0:
        low, high = 0.0, high - low
    whole = plot.unit is not Unit.PERCENT
    for intervals in range(_Y_INTERVALS, 0, -1):
        distance = axis_ticks.spacing(high - low, intervals, whole=whole)
        bottom = math.floor(low / distance + 1e-9) * distance
        top = max(math.ceil(high / distance - 1e-9) * distance, bottom + distance)
        if round((top - bottom) / distance) <= _Y_INTERVALS:
            break
    return bottom, top, distance


def _row(plot: Plot, frame: _Frame, row: int, name: str, gutter: int, strokes: _Strokes) -> Text:
    line = Text(" " * INDENT + name.rjust(gutter) + " " + (strokes.tick if name else strokes.side))
    columns = frame.canvas.columns
    marks = {frame.column(mark.x): mark for mark in plot.marks}
    level = _level_at(plot, frame, row, strokes)
    style = ""
    for column in range(columns):
        glyph = frame.canvas.glyph(row, column)
        style = marks[column].style if column in marks else style
        behind = level[column] if level else " "
        if glyph != " ":
            line.append(glyph, style)
        elif frame.behind.glyph(row, column) != " ":
            line.append(strokes.behind)
        elif column in marks and behind in {" ", strokes.level}:
            line.append(strokes.mark)
        else:
            line.append(behind)
    line.rstrip()
    return line


def _level_at(plot: Plot, frame: _Frame, row: int, strokes: _Strokes) -> str:
    """The dashes of the level in this row with its label, or ""."""
    for level in plot.levels:
        if frame.row(level.value) == row:
            label = f" {level.label} "
            if cell_len(label) == len(label) and len(label) + 4 < frame.canvas.columns:
                return (strokes.level * 2 + label).ljust(frame.canvas.columns, strokes.level)
            return strokes.level * frame.canvas.columns
    return ""


def _mark_labels(plot: Plot, frame: _Frame, blank: str, strokes: _Strokes) -> list[Text]:
    """A line above the plot for each mark: its label is right of its stroke, or left of it."""
    columns = frame.canvas.columns
    places = [(frame.column(mark.x), mark) for mark in plot.marks]
    lines = []
    for at, (place, mark) in enumerate(places):
        later = {other for other, _ in places[:at]}
        room_right = columns - place - 2
        line = Text(blank)
        if cell_len(mark.label) <= room_right:
            line.append(_strokes_at(later, place, strokes) + strokes.mark + " ")
            line.append(mark.label, mark.style)
        elif cell_len(mark.label) + 1 <= place:
            line.append(" " * (place - cell_len(mark.label) - 1))
            line.append(mark.label, mark.style)
            line.append(" " + strokes.mark)
        else:
            line.append(" " * max(0, columns - cell_len(mark.label)))
            line.append(mark.label, mark.style)
        lines.append(line)
    return lines


def _strokes_at(places: set[int], end: int, strokes: _Strokes) -> str:
    return "".join(strokes.mark if place in places else " " for place in range(end))


def _floor(plot: Plot, frame: _Frame, blank: str, strokes: _Strokes) -> list[Text]:
    """The horizontal axis: a line with ticks, and the numbers under it."""
    columns = frame.canvas.columns
    span = frame.right - frame.left
    divisor, symbol = axis_ticks.axis_unit(plot.axis, span)
    left, right = frame.left / divisor, frame.right / divisor
    whole = plot.axis is not AxisKind.SECONDS
    distance = axis_ticks.spacing(right - left, columns // _CELLS_PER_X_MARK, whole=whole)
    values = axis_ticks.marks(left, right, distance)
    places = [frame.column(value * divisor) for value in values]
    axis = "".join(strokes.floor_tick if at in places else strokes.floor for at in range(columns))
    numbers = _numbers(places, axis_ticks.labels(values), symbol or plot.axis_word, columns)
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
