"""Output of mprof, psrecord, memory_profiler, and of tracemalloc where it comes again and again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from memdiag.recording.documents.refused_listings import listing_remedy
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.line_tools import table_of_lines
from memdiag.recording.monitors.samplings import Row, all_lines
from memdiag.recording.parsing.column_vocabulary import IN_USE, MEMORY
from memdiag.recording.tables.table import Table

_MPROF = re.compile(r"(?:CMDLINE .*\n)?(?:(?:MEM|FUNC|CHLD) .*\n)+")
_PSRECORD = re.compile(r"#\s*Elapsed time\s+CPU \(%\)\s+Real \(MB\)\s+Virtual \(MB\)")
# memory_profiler's `@profile`: a table for each call, whose first row is what there was before it.
_PROFILE = re.compile(r"\s*Line #\s+Mem usage\s+Increment\b.*")
_PROFILED_FILE = re.compile(r"Filename: (\S.{0,400}?)\s*")
_PROFILED_LINE = re.compile(r"\s*([0-9]+)\s+([0-9.]+ MiB)\s+-?[0-9.]+ MiB\b.*")

# `/app/feed.py:118: size=4.1 MiB (+4.1 MiB), count=28758 (+28758), average=148 B`
_TRACED = re.compile(r"\s*(\S.{0,200}:[0-9]+): size=([0-9.]+ [KMGT]?i?B)\b.*")
_TIMES_AT_LEAST = 4
_LONGEST = 400
_AMOUNT = re.compile(r"[0-9] ?[KMGT]?i?B\b|[0-9]{5}")
_WORD = re.compile("[a-z]+")


def is_mprof(source: Source) -> bool:
    """Return True if the head has the lines of `mprof run`."""
    head = source.head()
    return head.startswith(("CMDLINE", "MEM ")) and _MPROF.match(head + "\n") is not None


def read_mprof(source: Source) -> Table:
    """`mprof run`: `MEM <MiB> <seconds since 1970>`, and `CHLD <n> ...` for children."""
    lines = pl.Series("line", all_lines(source))
    own = lines.str.extract_groups(r"^MEM ([0-9.]+) ([0-9.]+)").struct.unnest()
    child = lines.str.extract_groups(r"^CHLD ([0-9]+) ([0-9.]+) ([0-9.]+)").struct.unnest()
    memory, at, number = own.to_series(0), own.to_series(1), child.to_series(0)
    names = pl.select(
        pl.when(number.is_not_null())
        .then(pl.lit("child ") + number)
        .when(memory.is_not_null())
        .then(pl.lit("main"))
    ).to_series()
    frame = pl.DataFrame(
        {
            "timestamp": at.zip_with(at.is_not_null(), child.to_series(2)).cast(pl.Float64),
            "process": names,
            "memory_mib": memory.zip_with(memory.is_not_null(), child.to_series(1)).cast(
                pl.Float64
            ),
        }
    ).drop_nulls()
    return Table.of(frame)


def is_psrecord(source: Source) -> bool:
    """Return True if the head begins with the header of `psrecord --log`."""
    return _PSRECORD.match(source.head().lstrip()) is not None


def read_psrecord(source: Source) -> Table:
    """`psrecord --log`: elapsed time, CPU, real and virtual memory in MB."""
    numbers = pl.Series(all_lines(source)).str.extract_groups(
        r"^\s*([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s+([0-9.]+)\s*$"
    )
    frame = numbers.struct.unnest().drop_nulls()
    frame.columns = ["elapsed_s", "cpu", "rss_mb", "vms_mb"]
    return Table.of(frame.drop("cpu").cast(pl.Float64))


def is_profiled(source: Source) -> bool:
    """Return True if several tables are of one function, and their rows most lines with numbers."""
    lines = source.head().split("\n")
    counts = Counter(row["process"] for row in _calls(lines))
    return max(counts.values(), default=0) >= _TIMES_AT_LEAST and bool(listing_remedy(source))


def read_profiled(source: Source) -> Table:
    """The memory before each call of a profiled function, without functions of a few calls."""
    calls = _calls(all_lines(source))
    counts = Counter(call["process"] for call in calls)
    kept = [call for call in calls if counts[call["process"]] >= _TIMES_AT_LEAST]
    note = "of each table of memory_profiler the first line is read: the memory before the call"
    return replace(Table.of(pl.DataFrame(kept)), notes=(note,))


def _calls(lines: Iterable[str]) -> list[Row]:
    """The first reading of each table, with the place of its function and the number of the call.
    Only the first table of a file may have its name above it.
    """
    calls: list[Row] = []
    counts: Counter[str] = Counter()
    file, is_first = "", False
    for line in lines:
        if (named := _PROFILED_FILE.fullmatch(line)) is not None:
            file = named[1]
        elif _PROFILE.fullmatch(line):
            is_first = True
        elif is_first and (row := _PROFILED_LINE.fullmatch(line)) is not None:
            place, is_first = f"{file}:{row[1]}", False
            calls.append({"operation": str(counts[place]), "process": place, "mem usage": row[2]})
            counts[place] += 1
    return calls


def is_traced(source: Source) -> bool:
    """Return True if a line of code comes again and again in the head (once, it is a listing), and
    more often than amounts of all memory between the statistics.
    """
    lines = source.head().split("\n")
    rows = [_traced(line) for line in lines]
    often = Counter(row["container"] for row in rows if row is not None)
    totals = sum(row is None and _is_total(line) for row, line in zip(rows, lines, strict=True))
    return max(often.values(), default=0) >= max(_TIMES_AT_LEAST, totals + 1)


def _is_total(line: str) -> bool:
    """Return True for `current=38.4 MB; peak=47.4 MB` and `RSS 412 MB`."""
    words = _WORD.findall(line[:_LONGEST].lower())
    return not (MEMORY | IN_USE).isdisjoint(words) and _AMOUNT.search(line) is not None


def read_traced(source: Source) -> Table | None:
    """What each line of code has allocated, at each time that it is printed."""
    return table_of_lines(source, _traced)


def _traced(line: str) -> Row | None:
    found = _TRACED.fullmatch(line)
    return None if found is None else {"container": found[1], "memory": found[2]}
