"""A whole-numbered axis for trackers that want one: steps of the training, or seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memdiag.destinations.messages import Row

# How long rows wait for the first step before the axis is seconds. Heuristic: imports and the first
# batch of most trainings take less.
_PATIENCE_S = 60.0


class StepAxis:
    """Gives each row its position. The axis is chosen once and stays: rows wait until then.

    Rows before the first step are at 0, or at the first step if that is less.
    """

    def __init__(self) -> None:
        self._waiting: list[Row] = []
        self._has_steps: bool | None = None
        self._last = 0

    def placed(self, rows: Sequence[Row], *, is_last: bool = False) -> Iterator[tuple[int, Row]]:
        """The rows that can be placed by now. is_last: no further rows will follow."""
        self._waiting += rows
        if self._has_steps is None:
            first = next((row.step for row in self._waiting if row.step is not None), None)
            latest_s = self._waiting[-1].at_s if self._waiting else 0.0
            if first is not None:
                self._has_steps, self._last = True, min(first, 0)
            elif is_last or latest_s >= _PATIENCE_S:
                self._has_steps = False
            else:
                return
        placed, self._waiting = self._waiting, []
        for row in placed:
            yield self._position(row), row

    def _position(self, row: Row) -> int:
        if not self._has_steps:
            return int(row.at_s)
        if row.step is not None:
            self._last = row.step
        return self._last
