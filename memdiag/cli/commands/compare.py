"""`memdiag compare`: did the change fix the growth, help, do nothing, or make it worse?"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memdiag.cli import lazy_imports
from memdiag.cli.commands import analyze as analyzing
from memdiag.cli.options import gate as cli_gate
from memdiag.cli.options import inputs, outputs
from memdiag.cli.options import recording_options as cli_options
from memdiag.cli.options.exit_codes import of_comparison
from memdiag.cli.output import printing
from memdiag.errors import UnreadableInput, UsageError
from memdiag.values.findings import Failure, RecordingFinding
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.recording.read_options import ReadOptions
    from memdiag.values.comparison import Comparison
    from memdiag.values.findings import Finding
    from memdiag.values.measurements import Recording

Sides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="BASE CANDIDATE",
        help="Runs before and after the change: a file, a directory, or a quoted pattern each.",
    ),
]
Base = Annotated[
    list[str] | None,
    typer.Option("--base", metavar="FILE", help="A run before the change. Repeatable."),
]
Candidate = Annotated[
    list[str] | None,
    typer.Option("--candidate", metavar="FILE", help="A run after the change. Repeatable."),
]
Against = Annotated[
    str,
    typer.Option(
        "--against",
        metavar="NAME[=UNIT]",
        help="The candidate's column, where it is another than --metric's; one LOG may hold both.",
    ),
]


def compare(  # noqa: PLR0917 - one per option
    sides: Sides = None,
    base: Base = None,
    candidate: Candidate = None,
    x: analyzing.X = "",
    metric: analyzing.Metric = None,
    against: Against = "",
    file_format: analyzing.Format = "",
    pattern: analyzing.Pattern = "",
    table: analyzing.TableNumber = None,
    max_input: inputs.MaxInput = inputs.MAX_INPUT,
    json: cli_options.JsonOut = False,
    json_file: cli_options.JsonFile = None,
    force: cli_options.ForceReports = False,
    inconclusive: cli_gate.InconclusiveOption = None,
    width: analyzing.Width = None,
    ascii_only: analyzing.Ascii = False,
    color: analyzing.Color = None,
) -> None:
    """Say what a change did: FIXED, IMPROVED, NO EFFECT, WORSE, NEW LEAK, or INCONCLUSIVE.

    Recordings and logs are read as by analyze; --metric BEFORE --against AFTER takes two columns
    of one LOG. Several runs of a side count as one estimate with their spread. Ends with 0 (not
    worse), 1 (worse, or a new leak), 2 (unreadable) or 3 (can't tell).
    """
    sides = _of_one_log(sides or [], metric or []) if against else sides or []
    before, after = _named(sides, base or [], candidate or [])
    options = inputs.read_options(
        x=x,
        metric=metric or (),
        format=file_format,
        pattern=pattern,
        table=table,
        max_input=max_input,
    )
    report = [outputs.Named(path=json_file, where="--json-file")] if json_file is not None else []
    outputs.check(report, inputs=outputs.of_sources(_sources([*before, *after])), force=force)
    compared = _compared(before, after, options, against)
    code = of_comparison(compared, cli_gate.settle(inconclusive=inconclusive).inconclusive)
    for one in report:
        outputs.write(one, _as_json(compared, code), force=force)
    if json:
        sys.stdout.write(_as_json(compared, code))
    else:
        from memdiag.report.formats import comparison_text

        page = printing.Page(width=width, ascii_only=ascii_only, color=color)
        printing.show(page, lambda w, a: comparison_text.render(compared, width=w, ascii_only=a))
    raise typer.Exit(code)


def _of_one_log(sides: list[str], metric: Sequence[str]) -> list[str]:
    """The log for both sides, where only one is named."""
    if len(metric) != 1:
        raise UsageError(
            "--against needs the base's column", remedy="name it: --metric BEFORE --against AFTER"
        )
    return sides * 2 if len(sides) == 1 else sides


def _named(
    sides: Sequence[str], base: Sequence[str], candidate: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    if len(sides) == 2 and not (base or candidate):
        return sides[:1], sides[1:]
    if not sides and base and candidate:
        return base, candidate
    raise UsageError(
        "name the runs before and the runs after the change",
        remedy="memdiag compare before.csv after.csv, 'before/*.csv' 'after/*.csv' in quotes, "
        "or --base and --candidate once for each run",
    )


def _compared(
    before: Sequence[str], after: Sequence[str], options: ReadOptions, against: str
) -> Comparison:
    from memdiag.analysis.comparison.compare import compare as compare_findings
    from memdiag.recording.read_options import parse_metric

    theirs = (parse_metric(against),) if against else ()
    base, failures = _diagnosed(before, options)
    if not theirs:
        candidate, more = _diagnosed(after, options)
        _refuse_same(base, candidate)
    else:
        like = base[0].series[0] if base else None
        candidate, more = _diagnosed(after, replace(options, metrics=theirs), like)
        base, candidate = [_by_column(f) for f in base], [_by_column(f) for f in candidate]
    failures += more
    if failures and not (base and candidate):
        first = failures[0]
        raise UnreadableInput(
            f"{first.source}: {first.message}", source=first.source, remedy=first.remedy
        )
    return replace(compare_findings(base, candidate), failures=tuple(failures))


def _by_column(finding: RecordingFinding) -> RecordingFinding:
    """With the column in the source's name: two columns may be of one log."""
    return replace(finding, source=f"{finding.series[0].column} of {finding.source}")


def _as(like: Finding, recording: Recording) -> Recording:
    """The chosen column under the name of the one that it is compared with."""
    if {series.unit for series in recording.series} != {like.unit}:
        raise UsageError(
            f"{like.column} and {recording.series[0].column} have different units",
            remedy="say the unit: --metric BEFORE=MB --against AFTER=MB",
        )
    series = [replace(s, metric=like.metric, role=like.role) for s in recording.series]
    return replace(recording, series=tuple(series))


def _refuse_same(base: Sequence[RecordingFinding], candidate: Sequence[RecordingFinding]) -> None:
    both = {Path(f.source).resolve() for f in base} & {Path(f.source).resolve() for f in candidate}
    if both:
        raise UsageError(
            f"{printable(sorted(both)[0].name)} is on both sides",
            remedy="name each run on one side only, or two of its columns: --metric BEFORE "
            "--against AFTER",
        )


def _diagnosed(
    arguments: Sequence[str], options: ReadOptions, like: Finding | None = None
) -> tuple[list[RecordingFinding], list[Failure]]:
    from memdiag.analysis.diagnose import diagnose

    reading = lazy_imports.reading()
    found: list[RecordingFinding] = []
    failures: list[Failure] = []
    for argument in arguments:
        try:
            sources = reading.expand([argument], inputs.say_left_out)
        except UnreadableInput as error:
            failures.append(_failure(argument, error))
            continue
        for source in sources:
            try:
                recording = reading.read(source, options)
                found.append(diagnose(recording if like is None else _as(like, recording)))
            except UnreadableInput as error:
                failures.append(_failure(source, error))
    return found, failures


def _sources(arguments: Sequence[str]) -> list[str]:
    """What the arguments mean, as far as that can be known."""
    reading = lazy_imports.reading()
    found: list[str] = []
    for argument in arguments:
        with contextlib.suppress(UnreadableInput):
            found += reading.expand([argument])
    return found


def _failure(source: str, error: UnreadableInput) -> Failure:
    where = "" if error.line is None else f"line {error.line}: "
    return Failure(source=source, message=where + error.message, remedy=error.remedy)


def _as_json(compared: Comparison, code: int) -> str:
    from memdiag.report.formats import json_documents

    return json_documents.text(json_documents.comparison(compared, code))
