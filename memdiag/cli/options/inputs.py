"""What `analyze` and `compare` read: the options for it, and the progress bar."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from memdiag.cli import lazy_imports
from memdiag.cli.options.declare import option, repeatable
from memdiag.cli.options.gate import place_of_runs
from memdiag.errors import ReadError
from memdiag.recording.native.runs import is_run_name, resolve
from memdiag.values.findings import Failure
from memdiag.values.sanitize import printable
from memdiag.values.units import invalid, parse_bytes

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from memdiag.recording.read_options import ReadOptions
    from memdiag.values.findings import RecordingFinding
    from memdiag.values.measurements import Recording

# Nothing is drawn for reads shorter than this, nor more often. Heuristic.
_SHOWN_AFTER_S, _DRAWN_EVERY_S = 1.0, 0.1
_NAME_LENGTH = 30


def max_bytes(text: str) -> int:
    """The bytes that `--max-input` allows. Raises UsageError."""
    allowed = parse_bytes(text, "--max-input")
    if allowed < 1:
        raise invalid(text, "--max-input", "must be greater than 0", "write 8GB")
    return allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """How `analyze` and `compare` read files. planned_x: where the run is planned to end."""

    x: str = option(
        "--x", "COLUMN", "Column to use as the x axis.", default="", panel="Reading", typical=True
    )
    x_is: str = option(
        "--x-is",
        "UNIT",
        "What the x axis counts: step, epoch, second, sample, operation (a run, a load), request.",
        default="",
        panel="Reading",
    )
    metric: tuple[str, ...] = repeatable(
        "--metric",
        "NAME[=UNIT]",
        "Judge this column, in this unit (MB, GiB, bytes, count, percent), or as free memory "
        "(free). Repeatable.",
        panel="Reading",
        typical=True,
    )
    phase_column: str = option(
        "--phase-column", "COLUMN", "Column to use as the phase.", default="", panel="Reading"
    )
    format: str = option(
        "--format",
        "NAME",
        "Format of the files (csv, text, markdown, wandb, ...).",
        default="",
        panel="Reading",
    )
    pattern: str = option(
        "--pattern",
        "REGEX",
        "Read lines that match REGEX; named groups are columns: '(?<step>[0-9]+): (?<rss_mb>.*)'.",
        default="",
        panel="Reading",
    )
    table: int | None = option(
        "--table", "N", "Use the N-th table of a Markdown document.", low=1, panel="Reading"
    )
    max_input_bytes: int = option(
        "--max-input",
        "SIZE",
        "Read at most SIZE of a pipe or of an unpacked file.",
        default="8GB",
        parse=max_bytes,
        panel="Reading",
    )
    planned_x: float | None = option(
        "--planned-steps",
        "N",
        "Planned length of the run, for forecasts.",
        panel="Reading",
        typical=True,
    )


class Inputs:
    """What a command reads.

    options: how. failures: what could not be read, and why.
    """

    def __init__(self, options: InputOptions | None = None) -> None:
        """options: None for the defaults. Raises UsageError."""
        from memdiag.recording.read_options import ReadOptions, parse_metric, parse_x_is

        self.failures: list[Failure] = []
        self.options = ReadOptions(progress=ReadingBar())
        if options is None:
            return
        given = {one.name: getattr(options, one.name) for one in fields(options)}
        metrics = tuple(map(parse_metric, given.pop("metric")))
        given["x_is"] = parse_x_is(given["x_is"])
        del given["planned_x"]  # not for reading
        self.options = replace(self.options, metrics=metrics, **given)

    def sources(self, arguments: Iterable[str]) -> list[str]:
        """The sources that the arguments name, each once. Raises UsageError for a run that is not
        there.
        """
        reading = lazy_imports.reading()
        found: dict[str, None] = {}
        for argument in arguments:
            with self._recorded(argument):
                source = named_source(argument)
                found |= dict.fromkeys(reading.expand([source], _report_left_out))
        return list(found)

    def findings(
        self,
        sources: Iterable[str],
        judge: Callable[[Recording], RecordingFinding],
        options: ReadOptions | None = None,
    ) -> list[RecordingFinding]:
        """The findings of `judge`. Each source is read and forgotten before the next one is read.

        options: how to read, `self.options` by default.
        """
        reading = lazy_imports.reading()
        found: list[RecordingFinding] = []
        for source in sources:
            with self._recorded(source):
                found.append(judge(reading.read(source, options or self.options)))
        return found

    @contextmanager
    def _recorded(self, source: str) -> Iterator[None]:
        try:
            yield
        except ReadError as error:
            where = "" if error.line is None else f"line {error.line}: "
            message = where + error.message
            self.failures.append(Failure(source=source, message=message, remedy=error.remedy))


def named_source(argument: str) -> str:
    """The recording of a run that `last`, `last~1` or an ID names; a file of this name comes first.

    Raises UsageError if there is no such run.
    """
    if os.path.lexists(argument) or not is_run_name(argument):
        return argument
    return str(resolve(place_of_runs(), argument))


def _report_left_out(name: str, kind: str) -> None:
    """A line about an irregular file among recordings."""
    print(f"memdiag: {printable(name)} was left out: it is {kind}", file=sys.stderr)


class ReadingBar:
    """A progress bar on stderr, if it is a terminal, for reads longer than a second."""

    def __init__(self) -> None:
        self._began_s: float | None = None
        self._drawn_s = 0.0
        self._bar: tuple[Progress, TaskID] | None = None

    def reached(self, source: str, done_bytes: int, total_bytes: int | None) -> None:
        """`done_bytes` were read, of `total_bytes`; None if the total is unknown."""
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
        """Remove the bar, if it is drawn."""
        if self._bar is not None:
            self._bar[0].stop()
        self._bar = self._began_s = None


def _new_bar(source: str, total_bytes: int | None) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    class StandardError(Console):
        """A console that never hides the cursor: a signal could end memdiag before it is shown."""

        def show_cursor(self, show: bool = True) -> bool:
            return False

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=StandardError(stderr=True),
        auto_refresh=False,  # a refresh thread would outlive Ctrl-C by a moment
        transient=True,
    )
    name = "standard input" if source == "-" else printable(source)
    if len(name) > _NAME_LENGTH:
        name = "..." + name[-_NAME_LENGTH:]
    task = bar.add_task(f"reading {name}", total=total_bytes)
    bar.start()
    return bar, task
