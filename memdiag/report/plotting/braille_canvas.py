"""A grid of dots that prints as characters: braille (2 x 4 dots a cell) or ASCII (1 x 3)."""

from __future__ import annotations

from dataclasses import dataclass, field

# The bits of U+2800..U+28FF of the dots of a cell: of its left column, the lowest first, and of its
# right one.
_BRAILLE_BITS = (0x40, 0x04, 0x02, 0x01, 0x80, 0x20, 0x10, 0x08)
# By the dots that are drawn, a bit each; of ASCII: the lower, middle and upper one.
_ASCII_GLYPHS = (" ", ".", "-", ":", "'", ":", ":", "|")
_BRAILLE_GLYPHS = " " + "".join(
    chr(0x2800 + sum(bit for at, bit in enumerate(_BRAILLE_BITS) if dots >> at & 1))
    for dots in range(1, 256)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """columns, rows: cells. Dot (0, 0) is the lower left one; dots outside are not drawn."""

    columns: int
    rows: int
    ascii_only: bool = False
    # For each column of dots a number, whose lowest bit is the lowest dot.
    _dots: dict[int, int] = field(default_factory=dict)

    @property
    def dots_per_cell(self) -> tuple[int, int]:
        """Dots across and up in one cell."""
        return (1, 3) if self.ascii_only else (2, 4)

    def line(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Draw a line of dots from `start` to `end`."""
        (x, y), (to_x, to_y) = start, end
        if x == to_x:
            self._draw(x, min(y, to_y), max(y, to_y))
            return
        paces = max(abs(to_x - x), abs(to_y - y))
        for pace in range(paces + 1):
            part = pace / paces
            up = round(y + part * (to_y - y))
            self._draw(round(x + part * (to_x - x)), up, up)

    def _draw(self, across: int, low: int, high: int) -> None:
        """Draw the dots of a column between two heights."""
        if high < 0:
            return
        if not self.ascii_only:  # a line of single braille dots is hard to see
            low -= 1
        self._dots[across] = self._dots.get(across, 0) | (2 << high) - (1 << max(0, low))

    def row(self, row: int) -> str:
        """The characters of a row, spaces where it is empty. Row 0 is the top."""
        wide, high = self.dots_per_cell
        below = high * (self.rows - 1 - row)
        columns = [self._dots.get(across, 0) >> below for across in range(self.columns * wide)]
        if self.ascii_only:
            return "".join(_ASCII_GLYPHS[dots & 7] for dots in columns)
        pairs = zip(columns[::2], columns[1::2], strict=True)
        return "".join(_BRAILLE_GLYPHS[left & 15 | (right & 15) << 4] for left, right in pairs)
