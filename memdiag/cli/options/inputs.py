"""What `analyze` and `compare` take in: how much at the most, and what they say on the way."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memdiag.errors import UsageError
from memdiag.values.sanitize import printable
from memdiag.values.units import parse_bytes

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from memdiag.recording.read_options import ReadOptions

MaxInput = Annotated[
    str,
    typer.Option(
        "--max-input",
        metavar="SIZE",
        help="Read no more than this of a pipe or, unpacked, of a packed file.",
    ),
]
MAX_INPUT = "8GB"

# What is read sooner needs no bar; one that is drawn more often only costs time. Chosen.
_SHOWN_AFTER_S, _DRAWN_EVERY_S = 1.0, 0.1
_NAME_LENGTH = 30


def read_options(*, metric: Sequence[str], max_input: str, **named: Any) -> ReadOptions:
    """How the files are to be read, by the options of the command line. Raises UsageError.

    named: those that go by the same name in ReadOptions.
    """
    from memdiag.recording.read_options import ReadOptions, parse_metric

    return ReadOptions(
        metrics=tuple(parse_metric(text) for text in metric),
        max_input_bytes=max_bytes(max_input),
        progress=ReadingBar(),
        **named,
    )


def max_bytes(text: str) -> int:
    """Bytes that `--max-input` allows. Raises UsageError."""
    allowed = parse_bytes(text)
    if allowed < 1:
        raise UsageError(f"--max-input {printable(text)} allows nothing", remedy="write 8GB")
    return allowed


def say_left_out(name: str, kind: str) -> None:
    """A line about what stands among recordings and is no regular file."""
    print(f"memdiag: {printable(name)} was left out: it is {kind}", file=sys.stderr)


class ReadingBar:
    """A bar on standard error, where that is a terminal, for what takes longer than a second."""

    def __init__(self) -> None:
        self._began_s: float | None = None
        self._drawn_s = 0.0
        self._bar: tuple[Progress, TaskID] | None = None

    def reached(self, source: str, done_bytes: int, total_bytes: int | None) -> None:
        """So many bytes were read, of so many; None where nobody knows of how many."""
        now_s = time.monotonic()
        if self._began_s is None:
            self._began_s = now_s
        if now_s - max(self._began_s + _SHOWN_AFTER_S, self._drawn_s + _DRAWN_EVERY_S) < 0:
            return
        self._drawn_s = now_s
        if self._bar is None:
            if not sys.stderr.isatty():
                return
            self._bar = _new_bar(source, total_bytes)
        bar, task = self._bar
        bar.update(task, completed=done_bytes, refresh=True)

    def done(self) -> None:
        """Take the bar away, if there is one."""
        if self._bar is not None:
            self._bar[0].stop()
        self._bar = self._began_s = None


def _new_bar(source: str, total_bytes: int | None) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    class StandardError(Console):
        """A terminal whose cursor stays: a signal that ends us would leave it without one."""

        def show_cursor(self, show: bool = True) -> bool:
            return False

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=StandardError(stderr=True),
        auto_refresh=False,  # a thread of its own would outlive Ctrl-C by a moment
        transient=True,
    )
    name = "standard input" if source == "-" else printable(source)
    if len(name) > _NAME_LENGTH:
        name = "..." + name[-_NAME_LENGTH:]
    task = bar.add_task(f"reading {name}", total=total_bytes)
    bar.start()
    return bar, task
