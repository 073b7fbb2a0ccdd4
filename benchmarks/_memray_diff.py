"""Writes what is in use at the end of memray's recordings, and what has grown between two times.

python _memray_diff.py RESULT RECORDING...
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

Stack = tuple[tuple[str, int], ...]  # (file, line), innermost first

FIRST, SECOND = 0.4, 0.95  # of the recording's snapshots
MOST_FRAMES = 60


def main(result: str, *recordings: str) -> None:
    leaked: dict[Stack, int] = {}
    grown: dict[Stack, int] = {}
    for recording in recordings:
        reader = import_module("memray").FileReader(recording)
        stacks = Stacks()
        for record in reader.get_leaked_allocation_records(merge_threads=True):
            stack = stacks.of(record)
            leaked[stack] = leaked.get(stack, 0) + record.size
        count = len(list(reader.get_memory_snapshots()))
        first, second = int(FIRST * count), int(SECOND * count)
        for record in reader.get_temporal_allocation_records(merge_threads=True):
            stack = stacks.of(record)
            for part in record.intervals:
                begin, end = part.allocated_before_snapshot, part.deallocated_before_snapshot
                lives = [begin <= at and (end is None or end > at) for at in (first, second)]
                grown[stack] = grown.get(stack, 0) + part.n_bytes * (lives[1] - lives[0])
    found = {"leaks": list(leaked.items()), "diff": list(grown.items())}
    Path(result).write_text(json.dumps(found), encoding="utf-8")


class Stacks:
    """The stacks of one recording, each read once."""

    def __init__(self) -> None:
        self._known: dict[int, Stack] = {}

    def of(self, record: Any) -> Stack:
        if record.stack_id not in self._known:
            frames = record.stack_trace(MOST_FRAMES)
            self._known[record.stack_id] = tuple((frame[1], frame[2]) for frame in frames)
        return self._known[record.stack_id]


if __name__ == "__main__":
    main(*sys.argv[1:])
