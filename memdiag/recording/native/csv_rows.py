"""Samples as lines of CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memdiag.values.measurements import Sample
from memdiag.values.metrics import FIRST_METRICS, KEY_COLUMNS
from memdiag.values.sanitize import printable

# A program may use a new counter name at every step.
MAX_COLUMNS = 256
_MAX_TEXT = 200


class Rows:
    """The columns of a growing recording, and its lines."""

    def __init__(self) -> None:
        self._metrics = list(FIRST_METRICS)
        self._known = set(self._metrics)
        self._number_columns()
        self._texts: dict[str, str] = {}
        self.refused: set[str] = set()

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(KEY_COLUMNS) + len(self._metrics)

    def header(self) -> bytes:
        """The header line."""
        return (",".join((*KEY_COLUMNS, *map(self._text, self._metrics))) + "\n").encode()

    def learn(self, samples: Sequence[Sample]) -> int:
        """Add columns for new metrics. Returns their number."""
        before = len(self._metrics)
        for sample in samples:
            for metric in sample.readings:
                if metric not in self._known:
                    self._known.add(metric)
                    if self.width < MAX_COLUMNS and not self._taken(metric):
                        self._metrics.append(metric)
                    else:
                        self.refused.add(metric)
        if len(self._metrics) != before:
            self._number_columns()
        return len(self._metrics) - before

    def forget(self, count: int) -> None:
        """Remove the columns that were added last."""
        for metric in self._metrics[-count:]:
            self._known.discard(metric)
        del self._metrics[-count:]
        self._number_columns()

    def _number_columns(self) -> None:
        self._position = {metric: number for number, metric in enumerate(self._metrics)}
        self._blank = [""] * len(self._metrics)

    def line(self, sample: Sample) -> str:
        """One row."""
        at_s, pid, process, readings, step, phase, _ = sample
        cells = self._blank.copy()
        for metric, value in readings.items():
            position = self._position.get(metric)
            if position is not None:
                cells[position] = str(value) if type(value) is int else _cell(value)
        shown = "" if step is None else step
        where = f"{self._text(phase)},{pid},{self._text(process)}"
        return f"{at_s:.4f},{shown},{where},{','.join(cells)}\n"

    def _taken(self, metric: str) -> bool:
        """Return True if another column has the same name once it is written."""
        written = self._text(metric)
        return written in KEY_COLUMNS or any(self._text(m) == written for m in self._metrics)

    def _text(self, text: str) -> str:
        """A name as a cell: on one line, printable, quoted if CSV requires it."""
        cell = self._texts.get(text)
        if cell is None:
            cell = printable(text[:_MAX_TEXT])
            if any(mark in cell for mark in ',"#') or cell != cell.strip():
                cell = '"' + cell.replace('"', '""') + '"'
            if len(self._texts) < 10_000:
                self._texts[text] = cell
        return cell


def _cell(value: float) -> str:
    if not math.isfinite(value):
        return ""
    return repr(float(value)).removesuffix(".0")
