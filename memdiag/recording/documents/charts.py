"""The lists of numbers in the source of a chart or of a data frame: in pgfplots, Mermaid, Chart.js
and what R's `dput` prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.table import Table

_LARGEST_BYTES = 16 << 20
_LEAST = 3
_SIGN = re.compile(
    rb"\\addplot\b|(?m:^[ \t]*xychart(?:-beta)?\s*$)|\bdatasets\s*:\s*\[|\bstructure\(list\("
)
# `xlabel={Processed documents}`, and the pairs of `coordinates {(5, 196.7) (10, 253.8)}`.
_TEX_LABEL = re.compile(r"\b([xy])label\s*=\s*(?:\{([^{}\n]*)\}|([^,\n\]]*))")
_TEX_LEGEND = re.compile(r"\\addlegendentry\s*\{([^{}\n]*)\}")
_TEX_PLOT = re.compile(r"\bcoordinates\s*\{((?:\s*\([^()\n]*\))+)\s*\}")
_PAIR = re.compile(r"\(\s*([^(),\n]*),([^(),\n]*)\)")
# `x-axis "minute" [1, 2, 3]`, `y-axis "RSS (MB)" 0 --> 4000`, `line [1222, 1587, 1875]`.
_MERMAID = re.compile(
    r'(?m)^[ \t]*(x-axis|y-axis|line|bar)(?:[ \t]+"([^"\n]*)"|[ \t]+([\w-]+))?'
    r"(?:[ \t]*\[([^\]]*)\])?"
)
# `labels: ['00:00', '00:15'], datasets: [{label: 'Heap used (MB)', data: [91.6, 113.5]}]`.
_JS_LABELS = re.compile(r"""\blabels["']?\s*:\s*\[([^\]\[]*)\]""")
_MINUTE = re.compile(r"[0-9]{1,2}:[0-9]{2}")  # of the day
_JS_SERIES = re.compile(
    r"""\blabel["']?\s*:\s*(["'])([^"'\n]*)\1[^\[\]{}]{0,400}?\bdata["']?\s*:\s*\[([^\]\[{}]*)\]"""
)
# `structure(list(step = c(5L, 10L), mem_mb = c(808.0, 1090.9)), class = "data.frame", ...)`.
_R_FRAME = re.compile(r"\bstructure\(list\(")
_R_COLUMN = re.compile(
    r"(?:`([^`\n]+)`|(?<![\w.])([A-Za-z.][\w.]*))\s*=\s*(?:c\(([^()]*)\)|([0-9]{1,9}):([0-9]{1,9}))"
)
_R_NOT_COLUMNS = frozenset({"row.names", "class", "names"})
_R_MOST_FRAMES = 100

_Columns = dict[str, list[str]]


def is_chart(source: Source) -> bool:
    """Return True if the source has a sign of one of these."""
    return _SIGN.search(source.content) is not None


def read_chart(source: Source) -> Table | None:
    """The first with memory: its positions, and a column of each list; None without any."""
    text = source.first_bytes(_LARGEST_BYTES).decode("utf-8", errors="replace")
    for columns in (*_of_tex(text), _of_mermaid(text), _of_javascript(text), *_of_r(text)):
        lengths = {len(cells) for cells in columns.values()}
        has_memory = any(recognise(name).part is Part.METRIC for name in columns)
        if len(lengths) == 1 and min(lengths) >= _LEAST and has_memory:
            return Table.of(pl.DataFrame(columns))
    return None


def _of_tex(text: str) -> Iterator[_Columns]:
    labels = {found[1]: (found[2] or found[3] or "").strip() for found in _TEX_LABEL.finditer(text)}
    legends = [found[1].strip() for found in _TEX_LEGEND.finditer(text)]
    for n, plot in enumerate(_TEX_PLOT.finditer(text)):
        pairs = [(pair[1].strip(), pair[2].strip()) for pair in _PAIR.finditer(plot[1])]
        names = [labels.get("y", ""), *legends[n : n + 1]]
        name = next((one for one in names if recognise(one).part is Part.METRIC), "")
        yield _over(labels.get("x", ""), [x for x, _ in pairs], {name: [y for _, y in pairs]})


def _of_mermaid(text: str) -> _Columns:
    positions: list[str] = []
    names = {"x-axis": "", "y-axis": ""}
    lists: _Columns = {}
    for kind, quoted, word, numbers in _MERMAID.findall(text):
        if kind in names:
            names[kind] = quoted or word
            positions = _split(numbers) if kind == "x-axis" else positions
        elif numbers:
            name = names["y-axis"] if not lists else f"{names['y-axis']} #{len(lists)}"
            lists[quoted or name] = _split(numbers)
    return _over(names["x-axis"], positions, lists)


def _of_javascript(text: str) -> _Columns:
    labels = _JS_LABELS.search(text)
    positions = _split(labels[1]) if labels else []
    is_clock = bool(positions) and all(map(_MINUTE.fullmatch, positions))
    positions = [f"{one}:00" for one in positions] if is_clock else positions
    lists = {name: _split(numbers) for _, name, numbers in _JS_SERIES.findall(text)}
    return _over("time" if is_clock else "", positions, lists)


def _of_r(text: str) -> Iterator[_Columns]:
    for frame in islice(_R_FRAME.finditer(text), _R_MOST_FRAMES):
        columns: _Columns = {}
        counted: dict[str, range] = {}
        for column in _R_COLUMN.finditer(text, frame.end()):
            quoted, word, cells, first, last = column.groups()
            name = quoted or word
            if name in _R_NOT_COLUMNS or name in columns or name in counted:
                break
            if first:
                counted[name] = range(int(first), int(last) + 1)
            else:
                columns[name] = [one.removesuffix("L") for one in _split(cells)]
        if not columns and not counted:  # nor will there be any further on
            return
        lengths = set(map(len, columns.values()))
        axes = (name for name, one in counted.items() if {len(one)} == lengths)
        yield {name: list(map(str, counted[name])) for name in islice(axes, 1)} | columns


def _over(axis: str, positions: list[str], lists: _Columns) -> _Columns:
    """The lists over their positions, which are samples if nothing names them."""
    if not positions:
        return lists
    return {axis if recognise(axis).part is Part.AXIS else "sample": positions, **lists}


def _split(numbers: str) -> list[str]:
    cells = [one.strip().strip("\"'") for one in numbers.split(",")]
    return cells[:-1] if cells and not cells[-1] else cells
