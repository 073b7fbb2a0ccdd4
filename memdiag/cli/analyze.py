"""`memdiag analyze`: judge recordings and logs that are there already."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memdiag.cli import options as cli_options
from memdiag.cli.exits import Inconclusive, exit_code
from memdiag.errors import CannotMeasure, MemdiagError, UnreadableInput, UsageError
from memdiag.findings import Diagnosis, Failure, RecordingFinding
from memdiag.model import Limit, Role
from memdiag.printable import printable
from memdiag.units import parse_bytes

if TYPE_CHECKING:
    from memdiag.model import Recording
    from memdiag.recording.options import ReadOptions

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Recordings, CSV logs, directories or patterns of them, or - for standard input.",
    ),
]
X = Annotated[str, typer.Option("--x", metavar="COLUMN", help="Take this column as the axis.")]
Metric = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME[=UNIT]",
        help="Judge this column, in this unit (MB, GiB, bytes, count, percent). Repeatable.",
    ),
]
PhaseColumn = Annotated[
    str, typer.Option("--phase-column", metavar="COLUMN", help="Take this column as the phase.")
]
Format = Annotated[
    str,
    typer.Option(
        "--format", metavar="NAME", help="Read the files as this (csv, text, markdown, jsonl, ...)."
    ),
]
Pattern = Annotated[
    str,
    typer.Option(
        "--pattern",
        metavar="REGEX",
        help="Read lines by it; named groups are columns, as in '(?<step>[0-9]+): (?<rss_mb>.*)'.",
    ),
]
TableNumber = Annotated[
    int | None,
    typer.Option("--table", metavar="N", min=1, help="Take this table of a Markdown document."),
]
PlannedSteps = Annotated[
    float | None,
    typer.Option(
        "--planned-steps", metavar="N", help="Forecast to here: how far the run is to go."
    ),
]
JsonOut = Annotated[
    bool, typer.Option("--json", help="Print the report as JSON, and nothing else.")
]
Width = Annotated[
    int | None, typer.Option("--width", metavar="N", min=20, help="Columns of the report.")
]
Ascii = Annotated[bool, typer.Option("--ascii", help="Use no character outside ASCII.")]
Color = Annotated[
    bool | None,
    typer.Option("--color/--no-color", help="Colour, also in a pipe.  [default: on terminals]"),
]

# What `--limit` is a ceiling for: everything that takes room in one memory.
_LIMITED = frozenset(
    {
        Role.RESIDENT,
        Role.UNIQUE,
        Role.PROPORTIONAL,
        Role.HOST,
        Role.IN_USE,
        Role.COLLECTED_HEAP,
        Role.DEVICE,
        Role.DEVICE_RESERVED,
        Role.DEVICE_ALLOCATED,
        Role.PEAK,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """How the report is to be printed; None where the terminal decides."""

    width: int | None
    ascii_only: bool
    color: bool | None


def analyze(  # noqa: PLR0917 - one per option
    files: Files,
    x: X = "",
    metric: Metric = None,
    phase_column: PhaseColumn = "",
    file_format: Format = "",
    pattern: Pattern = "",
    table: TableNumber = None,
    planned_steps: PlannedSteps = None,
    limit: cli_options.LimitOption = None,
    json: JsonOut = False,
    json_file: cli_options.JsonFile = None,
    inconclusive: cli_options.InconclusiveOption = Inconclusive.FAIL,
    width: Width = None,
    ascii_only: Ascii = False,
    color: Color = None,
) -> None:
    """Judge recordings, or any log with a column of steps or time and columns of memory.

    Columns and units are recognised by their names. Each file gets its own verdict; one that
    cannot be read does not keep the others from being judged, but the exit code is then 2.
    """
    from memdiag.recording.options import ReadOptions, parse_metric

    options = ReadOptions(
        x=x,
        metrics=tuple(parse_metric(text) for text in metric or ()),
        phase_column=phase_column,
        format=file_format,
        pattern=pattern,
        table=table,
    )
    limits = () if limit is None else (_limit(limit),)
    diagnosis = _diagnose_all(files, options, limits, planned_steps)
    code = exit_code(diagnosis, inconclusive=inconclusive)
    if json_file is not None:
        _write(json_file, _as_json(diagnosis, code))
    if json:
        _complain_about(diagnosis.failures)
        sys.stdout.write(_as_json(diagnosis, code))
    else:
        _print(diagnosis, _Page(width=width, ascii_only=ascii_only, color=color))
    raise typer.Exit(code)


def _diagnose_all(
    arguments: Sequence[str],
    options: ReadOptions,
    limits: tuple[Limit, ...],
    planned_x: float | None,
) -> Diagnosis:
    """Every source is read, judged and forgotten before the next one is read."""
    from memdiag.recording.reading import expand, read

    found: list[RecordingFinding] = []
    failures: list[Failure] = []
    sources: dict[str, None] = {}
    for argument in arguments:
        try:
            sources |= dict.fromkeys(expand([argument]))
        except UnreadableInput as error:
            failures.append(_failure(argument, error))
    for source in sources:
        try:
            found.append(_judge(read(source, options), limits, planned_x))
        except UnreadableInput as error:
            failures.append(_failure(source, error))
    return Diagnosis(recordings=tuple(found), failures=tuple(failures))


def _judge(
    recording: Recording, limits: tuple[Limit, ...], planned_x: float | None
) -> RecordingFinding:
    from memdiag.analysis.diagnose import diagnose

    return diagnose(
        replace(
            recording,
            limits=recording.limits + limits,
            planned_x=recording.planned_x if planned_x is None else planned_x,
        )
    )


def _failure(source: str, error: MemdiagError) -> Failure:
    line = error.line if isinstance(error, UnreadableInput) else None
    where = "" if line is None else f"line {line}: "
    return Failure(source=source, message=where + error.message, remedy=error.remedy)


def _limit(text: str) -> Limit:
    size = parse_bytes(text)
    if size <= 0:
        raise UsageError(f"--limit {text} is no limit", remedy="write 16GB or 1.5GiB")
    return Limit(name="--limit", value_bytes=size, roles=_LIMITED)


def _as_json(diagnosis: Diagnosis, code: int) -> str:
    from memdiag.report import json as json_report

    return json_report.dumps(json_report.document(diagnosis, code))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotMeasure(
            f"{printable(str(path))} could not be written: {error.strerror}",
            remedy="choose another place for --json-file",
        ) from error


def _complain_about(failures: Sequence[Failure]) -> None:
    for failure in failures:
        print(f"memdiag: {printable(failure.source)}: {failure.message}", file=sys.stderr)
        print(f"  try: {failure.remedy}", file=sys.stderr)


def _print(diagnosis: Diagnosis, page: _Page) -> None:
    from rich.console import Console

    from memdiag.report import terminal

    console = Console(
        highlight=False,
        soft_wrap=True,
        force_terminal=page.color,
        no_color=True if page.color is False else None,
    )
    plain = not (console.encoding or "").lower().startswith("utf")
    columns = console.width if console.is_terminal else shutil.get_terminal_size((80, 24)).columns
    console.print(
        terminal.render(diagnosis, width=page.width or columns, ascii_only=page.ascii_only or plain)
    )
