"""A grid of dots that prints as characters: braille (2 x 4 dots a cell) or ASCII (1 x 3)."""

from __future__ import annotations

from dataclasses import dataclass, field

# Bit of the dot at (column, row) of a cell in U+2800..U+28FF.
_BRAILLE_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
# Bits 1, 2, 4: upper, middle and lower dot.
_ASCII_GLYPHS = (" ", "'", "-", ":", ".", ":", ":", "|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """columns, rows: cells. Dot (0, 0) is the lower left one; dots outside are not drawn."""

    columns: int
    rows: int
    ascii_only: bool = False
    _cells: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def dots_per_cell(self) -> tuple[int, int]:
        """Dots across and up in one cell."""
        return (1, 3) if self.ascii_only else (2, 4)

    def line(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Draw a line of dots from `start` to `end`."""
        (x, y), (to_x, to_y) = start, end
        paces = max(abs(to_x - x), abs(to_y - y))
        for pace in range(paces + 1):
            part = pace / paces if paces else 0.0
            across, up = round(x + part * (to_x - x)), round(y + part * (to_y - y))
            self.dot(across, up)
            if not self.ascii_only:  # a line of single braille dots is hard to see
                self.dot(across, up - 1)

    def dot(self, across: int, up: int) -> None:
        """Draw one dot, unless it is outside."""
        wide, high = self.dots_per_cell
        down = self.rows * high - 1 - up
        if not (0 <= across < self.columns * wide and 0 <= down < self.rows * high):
            return
        bit = 1 << down % high if self.ascii_only else _BRAILLE_BITS[across % wide][down % high]
        cell = (down // high, across // wide)
        self._cells[cell] = self._cells.get(cell, 0) | bit

    def glyph(self, row: int, column: int) -> str:
        """The character of a cell; a space if it is empty. Row 0 is the top."""
        bits = self._cells.get((row, column), 0)
        if not bits:
            return " "
        return _ASCII_GLYPHS[bits] if self.ascii_only else chr(0x2800 + bits)
