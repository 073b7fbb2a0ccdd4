"""dstat's screen: groups of columns between bars, printed again with their names on each page."""

from __future__ import annotations

import re

from memdiag.recording.inputs.source import Source
from memdiag.recording.monitors.line_tools import in_head, table_of_lines
from memdiag.recording.monitors.samplings import Row
from memdiag.recording.tables.table import Table

_GROUPS = re.compile(r"^-+[\w/ -]*\bmemory-usage-+")
_DATE = re.compile(r"^\s*[0-9]{2}-[0-9]{2}\s+(?=[0-9]{2}:[0-9]{2}:[0-9]{2})")
_MEMORY = {"used": "host_used", "free": "host_free", "buff": "host_buffers", "cach": "host_cached"}

is_dstat = in_head(_GROUPS)


def read_dstat(source: Source) -> Table | None:
    """The columns of memory, with the time of each row where it is printed."""
    names: list[str] = []

    def row_of(line: str) -> Row | None:
        cells = _DATE.sub("", line).replace("|", " ").split()
        if "used" in cells and "free" in cells:
            names[:] = cells
            return {}
        at = names.index("used") if names and len(cells) == len(names) else -1
        if at < 0 or not cells[at][:1].isdigit():
            return None
        return {_MEMORY[n]: c for n, c in zip(names[at:], cells[at:], strict=True) if n in _MEMORY}

    return table_of_lines(source, row_of)
