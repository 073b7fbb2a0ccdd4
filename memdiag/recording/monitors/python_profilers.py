"""Output of mprof and psrecord."""

from __future__ import annotations

import re

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.monitors.samplings import all_lines
from memdiag.recording.tables.table import Table

_MPROF = re.compile(r"(?:CMDLINE .*\n)?(?:(?:MEM|FUNC|CHLD) .*\n)+")
_PSRECORD = re.compile(r"#\s*Elapsed time\s+CPU \(%\)\s+Real \(MB\)\s+Virtual \(MB\)")


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
