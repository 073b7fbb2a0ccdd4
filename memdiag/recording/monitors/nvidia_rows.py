"""Rows of nvidia-smi's screen without the rest of it: `nvidia-smi | grep MiB`, again and again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby, pairwise

from memdiag.recording.inputs.source import Source
from memdiag.recording.monitors.line_tools import table_of_rows
from memdiag.recording.monitors.nvidia_smi import has_screens
from memdiag.recording.monitors.samplings import all_lines
from memdiag.recording.tables.table import Table

# `| 58%   68C    P2             295W / 350W |  13289MiB / 24576MiB |    91%      Default |`
_ROW = re.compile(
    r"\s*\|\s*(?:[0-9]{1,3}%|N/A|ERR!)\s+(?:[0-9]{1,3}C|N/A|ERR!)\s+(?:P[0-9]{1,2}|N/A)\s[^|]*"
    r"\|\s*([0-9]{1,8})MiB\s*/\s*([0-9]{1,8})MiB\s*\|"
)
# `|   0  NVIDIA GeForce RTX 3090        Off | 00000000:01:00.0 Off |`
_NAME = re.compile(r"\s*\|\s+([0-9]{1,3})\s+[A-Z][A-Za-z].*\|")
# What belongs to them: other rows of the screen, what grep prints between them, the command.
_BESIDE = re.compile(r"\s*(?:[|+]|--\s*$|$)|.*\bnvidia-smi\b")
_ROWS_AT_LEAST = 4
# Lines of something else for each row, such as the number of a job. Heuristic.
_OTHERS = 0.25
_GPUS_AT_MOST = 16
# Of several GPUs in turn, the memory differs less between the rows of one. Heuristic.
_LESS = 0.5


def are_rows(source: Source) -> bool:
    """Return True if the head has several such rows, little else, and no whole screen."""
    lines = source.head().split("\n")
    rows = sum(_ROW.match(line) is not None for line in lines)
    others = sum(_BESIDE.match(line) is None for line in lines) if rows >= _ROWS_AT_LEAST else 0
    return rows >= _ROWS_AT_LEAST and others <= _OTHERS * rows and not has_screens(source)


def read_rows(source: Source) -> Table | None:
    """The used memory of each GPU, named by the line above its row, or by its place among the rows
    that follow each other; None if these are of one loop over several GPUs, or not always as many.
    """
    lines = all_lines(source)
    found = [_ROW.match(line) for line in lines]
    names = [_NAME.match(above) for above, row in zip(["", *lines], found, strict=False) if row]
    rows = [row for row in found if row is not None]
    if all(names):
        gpus = [name[1] for name in names if name is not None]
    elif (places := _places(found, rows)) is not None:
        gpus = list(map(str, places))
    else:
        return None
    used = (row[1] for row in rows)
    return table_of_rows(
        [{"gpu": gpu, "memory.used [MiB]": mib} for gpu, mib in zip(gpus, used, strict=True)]
    )


def _places(
    found: Sequence[re.Match[str] | None], rows: Sequence[re.Match[str]]
) -> Sequence[int] | None:
    """The place of each row in its print."""
    prints = [sum(1 for _ in each) for is_row, each in groupby(found, key=bool) if is_row]
    if len(prints) > 1:
        return [place for n in prints for place in range(n)] if len(set(prints)) == 1 else None
    return [0] * len(rows) if _are_of_one_gpu(rows) else None


def _are_of_one_gpu(rows: Sequence[re.Match[str]]) -> bool:
    """Return True if these rows are too many for one print, and do not take turns."""
    totals = {row[2] for row in rows}
    if len(rows) <= _GPUS_AT_MOST or len(totals) > 1:
        return False
    used = [int(row[1]) for row in rows]
    moves = sum(abs(b - a) for a, b in pairwise(used)) / (len(used) - 1)
    return not any(
        sum(abs(b - a) for a, b in zip(used, used[n:], strict=False))
        < _LESS * moves * (len(used) - n)
        for n in range(2, min(_GPUS_AT_MOST, len(used) // 2) + 1)
    )
