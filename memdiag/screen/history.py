"""A series of any length as the lowest and highest reading of each of some hundred stretches."""

from __future__ import annotations

from memdiag.report.picture.model import Points
from memdiag.values.readings import PhaseSpan

_STRETCHES = 1024  # more than the dots across any terminal (heuristic)
_SPANS = 1024


class SeriesHistory:
    """The readings of one series, in constant memory: no peak of a single reading is lost.

    A stretch holds `width` readings. When there are too many, neighbors are merged.
    is_stepped: x is a step, else seconds.
    """

    def __init__(self, *, is_stepped: bool = False) -> None:
        self.is_stepped = is_stepped
        self._x: list[float] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self._in_last = 0
        self.width = 1
        self.latest = 0.0
        self.latest_x = 0.0

    def __len__(self) -> int:
        return len(self._x)

    def add(self, x: float, value: float) -> None:
        """One reading at `x`."""
        self.latest, self.latest_x = value, x
        if self._in_last == 0:
            self._x.append(x)
            self._low.append(value)
            self._high.append(value)
        elif value < self._low[-1]:
            self._low[-1] = value
        elif value > self._high[-1]:
            self._high[-1] = value
        self._in_last = (self._in_last + 1) % self.width
        if len(self._x) == _STRETCHES and self._in_last == 0:
            self._merge()

    def _merge(self) -> None:
        self._x = self._x[::2]
        self._low = list(map(min, self._low[::2], self._low[1::2]))
        self._high = list(map(max, self._high[::2], self._high[1::2]))
        self.width *= 2

    def points(self, columns: int) -> Points:
        """The lowest and the highest reading of each of at most `columns` parts of the axis, and
        the latest one. (x, value), ascending in x."""
        if not self._x:
            return ()
        left, length = self._x[0], (self.latest_x - self._x[0]) or 1.0
        scale = max(1, columns) / length
        lows: dict[int, tuple[float, float]] = {}
        highs: dict[int, float] = {}
        for x, low, high in zip(self._x, self._low, self._high, strict=True):
            column = int((x - left) * scale)
            before = lows.get(column)
            if before is None:
                lows[column], highs[column] = (x, low), high
                continue
            if low < before[1]:
                lows[column] = (before[0], low)
            highs[column] = max(highs[column], high)
        found = []
        for column, (x, low) in lows.items():
            found.append((x, low))
            if highs[column] > low:
                found.append((x, highs[column]))
        found.append((self.latest_x, self.latest))
        return tuple(found)


class PhaseHistory:
    """The phases of the job so far; of very many, the longer ones."""

    def __init__(self) -> None:
        self._spans: list[PhaseSpan] = []

    def add(self, x: float, phase: str) -> None:
        """The phase at `x`."""
        last = self._spans[-1] if self._spans else None
        if last is not None and last.phase == phase:
            self._spans[-1] = PhaseSpan(start_x=last.start_x, end_x=x, phase=phase)
            return
        if len(self._spans) >= _SPANS:
            middle = sorted(span.end_x - span.start_x for span in self._spans)[_SPANS // 2]
            longer = [span for span in self._spans if span.end_x - span.start_x > middle]
            self._spans = longer or self._spans[1::2]
        self._spans.append(PhaseSpan(start_x=x, end_x=x, phase=phase))

    @property
    def spans(self) -> tuple[PhaseSpan, ...]:
        """In order; empty without a named phase."""
        return tuple(span for span in self._spans if span.phase)
