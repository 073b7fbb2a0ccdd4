"""`memdiag analyze`: judge recordings and logs that are there already."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from memdiag.cli import lazy_imports
from memdiag.cli.options import gate as cli_gate
from memdiag.cli.options import inputs, outputs
from memdiag.cli.options import recording_options as cli_options
from memdiag.cli.options.exit_codes import exit_code
from memdiag.cli.output import printing
from memdiag.cli.output.ci_reports import publish
from memdiag.errors import MemdiagError, UnreadableInput
from memdiag.values.findings import Diagnosis, Failure, RecordingFinding
from memdiag.values.sanitize import printable
from memdiag.values.thresholds import one_gpu

if TYPE_CHECKING:
    from memdiag.recording.read_options import ReadOptions
    from memdiag.values.measurements import Recording

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
        "--format", metavar="NAME", help="Read the files as this (csv, text, markdown, wandb, ...)."
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
Why = Annotated[
    bool,
    typer.Option(
        "--why", help="Print what was argued for and against each verdict, in place of figures."
    ),
]
Width = Annotated[
    int | None, typer.Option("--width", metavar="N", min=20, help="Columns of the report.")
]
Ascii = Annotated[bool, typer.Option("--ascii", help="Use no character outside ASCII.")]
Color = Annotated[
    bool | None,
    typer.Option("--color/--no-color", help="Colour, also in a pipe.  [default: on terminals]"),
]


@cli_gate.gated
def analyze(
    files: Files,
    x: X = "",
    metric: Metric = None,
    phase_column: PhaseColumn = "",
    file_format: Format = "",
    pattern: Pattern = "",
    table: TableNumber = None,
    *,
    max_input: inputs.MaxInput = inputs.MAX_INPUT,
    planned_steps: PlannedSteps = None,
    gate: cli_gate.Gate,
    json: cli_options.JsonOut = False,
    json_file: cli_options.JsonFile = None,
    force: cli_options.ForceReports = False,
    why: Why = False,
    width: Width = None,
    ascii_only: Ascii = False,
    color: Color = None,
) -> None:
    """Judge recordings, or any log with a column of steps or time and columns of memory.

    Columns and units are recognised by their names. Each file gets its own verdict; one that
    cannot be read does not keep the others from being judged, but the exit code is then 2.
    """
    options = inputs.read_options(
        x=x,
        metric=metric or (),
        phase_column=phase_column,
        format=file_format,
        pattern=pattern,
        table=table,
        max_input=max_input,
    )
    sources, unknown = _sources(files)
    outputs.check(outputs.reports(json_file, gate), inputs=outputs.of_sources(sources), force=force)
    diagnosis = _diagnose_all(sources, unknown, options, gate, planned_steps)
    code = exit_code(diagnosis, inconclusive=gate.inconclusive, fail_on=gate.fail_on)
    unwritten = publish(diagnosis, gate, code, json_file, force=force)
    if json:
        _complain_about(diagnosis.failures)
        sys.stdout.write(_as_json(diagnosis, code))
    else:
        page = printing.Page(width=width, ascii_only=ascii_only, color=color)
        _show(diagnosis, page, why=why)
    if unwritten:
        raise unwritten[0]
    raise typer.Exit(code)


def _sources(arguments: Sequence[str]) -> tuple[list[str], list[Failure]]:
    """What the arguments mean, each source once, and those that mean nothing."""
    reading = lazy_imports.reading()
    failures: list[Failure] = []
    sources: dict[str, None] = {}
    for argument in arguments:
        try:
            sources |= dict.fromkeys(reading.expand([argument], inputs.say_left_out))
        except UnreadableInput as error:
            failures.append(_failure(argument, error))
    return list(sources), failures


def _diagnose_all(
    sources: Sequence[str],
    unknown: Sequence[Failure],
    options: ReadOptions,
    gate: cli_gate.Gate,
    planned_x: float | None,
) -> Diagnosis:
    """Every source is read, judged and forgotten before the next one is read."""
    reading = lazy_imports.reading()
    found: list[RecordingFinding] = []
    failures = list(unknown)
    for source in sources:
        try:
            found.append(_judge(reading.read(source, options), gate, planned_x))
        except UnreadableInput as error:
            failures.append(_failure(source, error))
    return Diagnosis(recordings=tuple(found), failures=tuple(failures))


def _judge(recording: Recording, gate: cli_gate.Gate, planned_x: float | None) -> RecordingFinding:
    from memdiag.analysis.attribution.known_sizes import told_in_models
    from memdiag.analysis.diagnose import diagnose
    from memdiag.analysis.forecasting.budgets import hold

    columns = sorted({s.metric for s in recording.series if one_gpu(s.metric)})
    limits = cli_options.limits_on(gate, columns)
    known = replace(
        recording,
        limits=recording.limits + limits,
        planned_x=recording.planned_x if planned_x is None else planned_x,
    )
    return hold(told_in_models(diagnose(known), gate.model_params), gate.budgets)


def _failure(source: str, error: MemdiagError) -> Failure:
    line = error.line if isinstance(error, UnreadableInput) else None
    where = "" if line is None else f"line {line}: "
    return Failure(source=source, message=where + error.message, remedy=error.remedy)


def _show(diagnosis: Diagnosis, page: printing.Page, *, why: bool) -> None:
    from memdiag.report.formats import terminal

    printing.show(page, lambda w, a: terminal.render(diagnosis, width=w, ascii_only=a, why=why))


def _as_json(diagnosis: Diagnosis, code: int) -> str:
    from memdiag.report.formats import json_documents

    return json_documents.text(json_documents.diagnosis(diagnosis, code))


def _complain_about(failures: Sequence[Failure]) -> None:
    for failure in failures:
        print(f"memdiag: {printable(failure.source)}: {failure.message}", file=sys.stderr)
        print(f"  try: {failure.remedy}", file=sys.stderr)
