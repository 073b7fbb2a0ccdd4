"""The width of the report and the characters it may use."""

from __future__ import annotations

import enum
import itertools
from dataclasses import dataclass

from rich.cells import cell_len

from memdiag.values.sanitize import printable

MIN_WIDTH = 40
# Longer lines are hard to read, even in a wide window.
_MEASURE = 100
_UNWRAPPED = 1_000_000


class Detail(enum.IntEnum):
    """How much a report shows."""

    VERDICT = 0
    FACTS = 1  # what fits on a screen
    SERIES = 2  # all series, the picture, phases, forecasts, notes
    ARGUMENTS = 3  # and the arguments for and against the verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """width: cells in a line, 40 or more. ascii_only: only ASCII characters are used.

    is_page: the reader's program wraps the lines, so that each paragraph is one.
    """

    width: int
    ascii_only: bool = False
    is_page: bool = False

    @property
    def measure(self) -> int:
        """Cells in a line of the report."""
        return _UNWRAPPED if self.is_page else max(MIN_WIDTH, min(self.width, _MEASURE))

    @property
    def plus_minus(self) -> str:
        return "+-" if self.ascii_only else "±"

    @property
    def ellipsis(self) -> str:
        return "..." if self.ascii_only else "…"

    def show(self, text: str, *, cells: int | None = None) -> str:
        """Text from outside, made printable; its middle is left out if it exceeds `cells`."""
        shown = printable(text, ascii_only=self.ascii_only)
        if cells is None or cell_len(shown) <= cells:
            return shown
        room = max(0, cells - cell_len(self.ellipsis))
        return _head(shown, room // 2) + self.ellipsis + _tail(shown, room - room // 2)


def _head(text: str, cells: int) -> str:
    """The beginning of the text that fits into these cells."""
    used = itertools.accumulate(cell_len(character) for character in text)
    return text[: sum(1 for width in used if width <= cells)]


def _tail(text: str, cells: int) -> str:
    return _head(text[::-1], cells)[::-1]
