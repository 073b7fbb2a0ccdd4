"""The status line of a running measurement, in the last row of the terminal.

The target writes to the same terminal, and its output must stay intact. So the last row is removed
from the scrolling region before the target starts (as apt does for its progress bar), and each
refresh is a single write that saves the cursor, draws that row and restores the cursor. Nothing is
written at the position of the target. `SETTLE` undoes everything; another process can write it if
this one is killed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from memdiag.report.text import numbers, rates, series_names
from memdiag.values.findings import Finding
from memdiag.values.measurements import Unit
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Reason, Verdict

_SAVE, _RESTORE = "\0337", "\0338"
_ERASE_ROW = "\033[2K"
_DIM, _PLAIN = "\033[2m", "\033[22m"
# Restores the full height and an empty last row; the cursor stays where the target left it.
SETTLE = (_SAVE + "\033[r" + "\033[999;1H" + _ERASE_ROW + _RESTORE).encode()
_FEWEST_ROWS, _FEWEST_COLUMNS = 6, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The content of the line. Empty or None parts are left out.

    trend: what memory does (`trend`). limit: what it will reach, and when (`limit`).
    """

    elapsed_s: float
    memory_bytes: int | None = None
    processes: int = 0
    step: int | None = None
    phase: str = ""
    trend: str = ""
    limit: str = ""


def line(status: Status, *, width: int) -> str:
    """The status as one line of at most `width` cells; parts are dropped from the end."""
    text = ""
    for part in _parts(status):
        longer = f"{text} · {part}" if text else f"memdiag {part}"
        if cell_len(longer) > width:
            break
        text = longer
    return text or set_cell_size("memdiag", width)


def _parts(status: Status) -> list[str]:
    parts = [_clock(status.elapsed_s)]
    if status.step is not None:
        parts.append(f"step {status.step:,}")
    if status.memory_bytes is not None:
        parts.append(numbers.size(status.memory_bytes))
    parts += filter(None, (status.trend, status.limit))
    if status.phase:
        phase = printable(status.phase)
        parts.append(phase if cell_len(phase) <= 24 else set_cell_size(phase, 21) + "...")
    if status.processes > 1:
        parts.append(f"{status.processes} processes")
    return parts


def _clock(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def trend(found: Finding | None) -> str:
    """What memory does so far: `collecting data`, `growing +1.2 MB per step`, `LEAK 94%, ...`."""
    if found is None or found.reason is Reason.TOO_FEW_SAMPLES:
        return "collecting data"
    growth, rate = found.growth_per_x, rates.of(found)
    brief = "" if rate is None else rate.brief()
    if found.unit is not Unit.BYTES:
        brief += f" ({found.metric})"
    match found.verdict:
        case Verdict.LEAK:
            return f"LEAK {numbers.confidence(found.confidence)}, {brief}".rstrip(", ")
        case Verdict.WARMUP if found.plateau is not None:
            return f"flat since {series_names.place(found, found.plateau.since_x.value)}"
        case Verdict.STABLE | Verdict.WARMUP:
            return "flat so far"
        case _ if growth is not None and growth.low > 0:
            return f"growing {brief}"
        case _:
            return "no clear trend yet"


def limit(name: str, left_s: float) -> str:
    """The limit that a leak reaches first: `host RAM full in about 13 min`."""
    return f"{printable(name)} full in about {numbers.about(max(0.0, left_s))}"


def wanted(descriptor: int, environ: Mapping[str, str]) -> bool:
    """Return True if the descriptor is a terminal in the foreground that can show a status line."""
    if environ.get("TERM", "dumb") in {"dumb", "unknown", ""}:
        return False
    try:
        if not os.isatty(descriptor) or os.tcgetpgrp(descriptor) != os.getpgrp():
            return False
        columns, rows = os.get_terminal_size(descriptor)
    except OSError:
        return False
    return rows >= _FEWEST_ROWS and columns >= _FEWEST_COLUMNS


class LastRow:
    """The reserved last row of the terminal behind `descriptor`.

    No method fails if the terminal is gone.
    """

    def __init__(self, descriptor: int, *, is_wanted: Callable[[], bool]) -> None:
        self._descriptor = descriptor
        self._is_wanted = is_wanted
        self._size: os.terminal_size | None = None
        self._shown = ""

    def reserve(self) -> None:
        """Remove the last row from the scrolling region."""
        if self._size is None and self._is_wanted():
            # A row down first, so that the cursor is never below the region; then up again.
            self._write("\033D" + self._region() + "\033[1A")

    def show(self, status: Callable[[], Status]) -> None:
        """Draw the row if it has changed. `status` is called only if the row is shown."""
        if self._size is None:
            return
        if not self._is_wanted():  # in the background now
            return
        painted = self._painted(status())
        if painted:
            self._write(painted)

    def release(self) -> None:
        """Release the row, empty."""
        if self._size is not None:
            self._size = None
            self._shown = ""
            self._write(SETTLE.decode())

    def _painted(self, status: Status) -> str:
        region = ""
        if self._terminal_size() != self._size:  # resized, which resets the region
            region = self._region()
        if self._size is None:
            return ""
        text = line(status, width=self._size.columns - 1)
        if text == self._shown and not region:
            return ""
        self._shown = text
        row = f"\033[{self._size.lines};1H{_ERASE_ROW}{_DIM}{text}{_PLAIN}"
        return f"{region}{_SAVE}{row}{_RESTORE}"

    def _region(self) -> str:
        self._size = self._terminal_size()
        if self._size is None:
            return ""
        return f"{_SAVE}\033[1;{self._size.lines - 1}r{_RESTORE}"

    def _terminal_size(self) -> os.terminal_size | None:
        try:
            size = os.get_terminal_size(self._descriptor)
        except OSError:
            return None
        return size if size.lines >= _FEWEST_ROWS else None

    def _write(self, text: str) -> None:
        """One write, so that output of the target cannot come in between."""
        try:
            os.write(self._descriptor, text.encode("utf-8", "replace"))
        except OSError:
            self._size = None  # the terminal is gone
