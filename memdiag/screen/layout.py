"""Which pane is where, for every size of the terminal, and how often each is drawn."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.text import Text

from memdiag.screen import panes
from memdiag.screen.messages import NEWS
from memdiag.screen.view import View

_WIDE = 130  # columns from which table and output are side by side
# The part of a core that drawing the chart may take, without what Textual does with it. Measured
# (benchmarks/live_screen.py).
_SHARE = 0.001


class Layout:
    """Draws the screen, the chart as often as its share of the processor allows."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._chart: list[Text] = []
        self._chart_size = (0, 0)
        self._chart_due_s = 0.0

    def forget(self) -> None:
        """Draw the chart anew the next time."""
        self._chart_due_s = 0.0

    def lines(self, width: int, height: int, *, is_paused: bool, message: str) -> list[Text]:
        """`height` lines of at most `width` cells."""
        view = self._view
        top = [*panes.head(view, width, is_paused=is_paused), panes.tabs(view, width)]
        lines = [*top, *self._body(width, height - len(top) - 1)]
        return [*_filled(lines, height - 1), panes.foot(view, width, message)]

    def _body(self, width: int, height: int) -> list[Text]:
        view = self._view
        processes = len(view.alive())
        table = min(processes + 1, max(2, height // 4)) if height >= 10 else 0
        has_output = view.has_output and height >= 12
        side_by_side = width >= _WIDE and has_output
        if side_by_side:
            table = max(table, height // 3)
        elif has_output:
            table = min(table, max(2, height // 4))
        chart = (
            height - table if side_by_side or not has_output else max(6, (height - table) * 2 // 3)
        )
        output = table if side_by_side else height - table - chart
        across = width // 2 if side_by_side else width
        drawn = _filled(self._charted(width, chart), chart)
        rows = panes.table(view, across, table) if table else []
        said = panes.output(view, width - across or width, output) if has_output else []
        if side_by_side:
            return [*drawn, *panes.beside(rows, said, across, table)]
        return [*drawn, *_filled(rows, table), *said]

    def _charted(self, width: int, height: int) -> list[Text]:
        now_s, size = time.monotonic(), (width, height)
        if now_s >= self._chart_due_s or size != self._chart_size:
            began_s = time.thread_time()
            self._chart, self._chart_size = panes.chart(self._view, width, height), size
            cost_s = time.thread_time() - began_s
            self._chart_due_s = now_s + min(cost_s / _SHARE, NEWS * self._view.frame.elapsed_s)
        return self._chart


def _filled(lines: Sequence[Text], height: int) -> list[Text]:
    return [*lines[:height], *([Text("")] * (height - len(lines)))]
