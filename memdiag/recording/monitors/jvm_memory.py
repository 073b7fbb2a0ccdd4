"""What `jmap -heap`, jmxterm and Kafka's JmxTool print of the memory of a JVM, in a loop."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from memdiag.recording.monitors.line_tools import in_head, table_of_lines
from memdiag.recording.parsing.column_meaning import Part, recognise

if TYPE_CHECKING:
    from memdiag.recording.inputs.source import Source
    from memdiag.recording.monitors.samplings import Row
    from memdiag.recording.tables.table import Table

# `PS Old Generation`, and below it `   used     = 432352555 (412.3MB)`.
_HEAP = re.compile(r"^Heap Usage:\s*$")
_USED = re.compile(r"\s+used\s+= ([0-9]+) \([0-9.]+MB\)\s*")
_SPACE = re.compile(r"([A-Za-z][\w -]{1,60}?):?\s*")
# `HeapMemoryUsage = { `, and below it `  used = 462427047;`.
_BEAN = re.compile(r"^#mbean = \S")
_OPENS = re.compile(r"(\w+) = \{\s*")
_MEMBER = re.compile(r"\s*(\w+) = ([0-9]+);\s*")
# `1731001200002,javax...CompositeDataSupport(...contents={committed=9, init=1, max=9, used=4})`.
_COMPOSITE = re.compile(r"^[0-9]{13},.{0,200}CompositeDataSupport\(")
_TIME = re.compile(r"([0-9]{13}),")
_CONTENTS = re.compile(r"contents=\{committed=[0-9]+, init=-?[0-9]+, max=-?[0-9]+, used=([0-9]+)\}")
_NAMES = re.compile(r'"([^"]+)"')

is_heap = in_head(_HEAP)
is_jmxterm = in_head(_BEAN)
is_jmxtool = in_head(_COMPOSITE)


def read_heap(source: Source) -> Table | None:
    """What is used of each space or generation, which a line above names."""
    return table_of_lines(source, _below(_SPACE, _of_space))


def read_jmxterm(source: Source) -> Table | None:
    """What is used of each attribute, and attributes of memory with one value, in bytes."""
    return table_of_lines(source, _below(_OPENS, _of_attribute))


def read_jmxtool(source: Source) -> Table | None:
    """What is used of each attribute with several values."""
    header = source.head().split("\n", 1)[0]
    names = [name.rpartition("type=")[2] for name in _NAMES.findall(header)][1:]

    def row_of(line: str) -> Row | None:
        used, time = _CONTENTS.findall(line), _TIME.match(line)
        if time is None:
            return None
        shown = names if len(names) == len(used) else [f"memory {n}" for n in range(len(used))]
        cells = zip(shown, used, strict=True)
        return {"timestamp": time[1], **{f"{name} used (bytes)": value for name, value in cells}}

    return table_of_lines(source, row_of)


def _below(
    heading: re.Pattern[str], row_of: Callable[[str, str], Row | None]
) -> Callable[[str], Row | None]:
    """A reader of lines with the last heading above them; "" without one."""
    last = [""]

    def with_heading(line: str) -> Row | None:
        if (found := heading.fullmatch(line)) is not None:
            last[0] = found[1]
        elif not line.strip(" };"):
            last[0] = ""
        return row_of(line, last[0])

    return with_heading


def _of_space(line: str, space: str) -> Row | None:
    found = _USED.fullmatch(line)
    return None if found is None else {f"heap used of {space} (bytes)": found[1]}


def _of_attribute(line: str, attribute: str) -> Row | None:
    found = _MEMBER.fullmatch(line)
    if found is None:
        return None
    if attribute:
        return {f"{attribute} used (bytes)": found[2]} if found[1] == "used" else {}
    meaning = recognise(found[1])
    is_memory = meaning.part is Part.METRIC and meaning.unit is None
    return {f"{found[1]} (bytes)": found[2]} if is_memory else {}
