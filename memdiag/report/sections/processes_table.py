"""Running processes to choose from: a line each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from memdiag.report.text import numbers, text_layout
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column
from memdiag.values.measurements import RunningProgram

_MOST = 20
_OTHER_CELLS = 32


def table(found: Sequence[RunningProgram], screen: Screen) -> list[Text]:
    """The largest of the processes, in the order given."""
    cells = max(20, screen.measure - _OTHER_CELLS)
    shown = found[:_MOST]
    columns = [
        Column("pid", [Text(str(one.pid)) for one in shown], right=True),
        Column("RSS", [Text(numbers.size(one.rss_bytes)) for one in shown], right=True),
        Column("running", [Text(numbers.about(one.age_s)) for one in shown], right=True),
        Column("command", [Text(screen.show(one.command, cells=cells)) for one in shown]),
    ]
    return text_layout.table(columns, gap=2)
