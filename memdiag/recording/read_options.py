"""Options for reading a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from memdiag.errors import UsageError
from memdiag.values import units
from memdiag.values.measurements import AxisKind, Unit

DEFAULT_MAX_INPUT_BYTES = 8 * 10**9

_COUNTS = {"count", "counts", "number", "1"}
_PERCENTS = {"percent", "%", "pct"}
_FREE = "free"


X_KINDS = {
    "step": AxisKind.STEP,
    "epoch": AxisKind.EPOCH,
    "second": AxisKind.SECONDS,
    "sample": AxisKind.INDEX,
    "operation": AxisKind.INDEX,
    "request": AxisKind.REQUEST,
}
"""What an axis may count, as `--x-is` names it; an operation is a whole one, such as a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChoice:
    """`--metric NAME[=UNIT]`. Without a unit the name or the cells must have it.

    is_free: it is free memory: less of it is more in use.
    """

    name: str
    unit: Unit | None = None
    factor: float = 1.0
    is_free: bool = False


class Progress(Protocol):
    """Receives the progress of reading a pipe or a compressed file."""

    def reached(self, source: str, done_bytes: int, total_bytes: int | None) -> None:
        """This many bytes were read; the total is None if it is unknown."""

    def done(self) -> None:
        """Reading has ended or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read a source.

    x: column to take as the axis, "" to find one.
    x_is: what the axis counts, None to infer it. Rows without an axis, or with only a clock, are
        then counted as that.
    metrics: columns to take as metrics, () to find them.
    phase_column: column to take as the phase, "" to find one.
    format: name of the format (`registry.FORMATS`), "" to recognize it.
    pattern: regular expression with named groups for lines of text, "" for none.
    table: number of the table to take from a document with several, counted from 1.
    max_input_bytes: largest input that is copied, decompressed or read into memory whole. Plain
        files that are read in place have no limit.
    progress: receives the progress of copying or decompressing, None for nobody.
    """

    x: str = ""
    x_is: AxisKind | None = None
    metrics: tuple[MetricChoice, ...] = ()
    phase_column: str = ""
    format: str = ""
    pattern: str = ""
    table: int | None = None
    max_input_bytes: int = DEFAULT_MAX_INPUT_BYTES
    progress: Progress | None = None


DEFAULTS = ReadOptions()


def parse_metric(text: str) -> MetricChoice:
    """`NAME` or `NAME=UNIT`; `NAME=free` is free memory, in the unit that its name or its cells
    have. Raises UsageError if the unit is unknown.
    """
    name, equals, unit = text.rpartition("=")
    if not equals:
        return MetricChoice(name=text)
    if not name:
        raise UsageError(f"{text!r} does not name a column", remedy="write --metric NAME=MB")
    if unit.lower() == _FREE:
        return MetricChoice(name=name, is_free=True)
    if unit.lower() in _COUNTS:
        return MetricChoice(name=name, unit=Unit.COUNT)
    if unit.lower() in _PERCENTS:
        return MetricChoice(name=name, unit=Unit.PERCENT)
    factor = units.bytes_per_unit(unit)
    if factor is None:
        raise UsageError(
            f"unknown unit {unit!r} in --metric {text}",
            remedy="use one of B, KB, MB, GB, KiB, MiB, GiB, count, percent, free",
        )
    return MetricChoice(name=name, unit=Unit.BYTES, factor=float(factor))


def parse_x_is(text: str) -> AxisKind | None:
    """What the axis counts, None for "". Raises UsageError."""
    kind = X_KINDS.get(text.strip().lower().removesuffix("s"))
    if kind is None and text:
        raise UsageError(
            f"unknown unit of the axis {text!r} for --x-is",
            remedy=f"use one of {', '.join(X_KINDS)}",
        )
    return kind
