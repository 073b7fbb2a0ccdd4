"""`memdiag compare`: did the change fix the growth, help, do nothing, or make it worse?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memdiag.cli import analyze as analyzing
from memdiag.cli import gate as cli_gate
from memdiag.cli import options as cli_options
from memdiag.cli import printing
from memdiag.cli.exits import of_comparison
from memdiag.errors import UnreadableInput, UsageError
from memdiag.findings import Failure, RecordingFinding

if TYPE_CHECKING:
    from memdiag.comparison import Comparison
    from memdiag.recording.options import ReadOptions

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


def compare(  # noqa: PLR0917 - one per option
    sides: Sides = None,
    base: Base = None,
    candidate: Candidate = None,
    x: analyzing.X = "",
    metric: analyzing.Metric = None,
    file_format: analyzing.Format = "",
    pattern: analyzing.Pattern = "",
    table: analyzing.TableNumber = None,
    json: cli_options.JsonOut = False,
    json_file: cli_options.JsonFile = None,
    inconclusive: cli_gate.InconclusiveOption = None,
    width: analyzing.Width = None,
    ascii_only: analyzing.Ascii = False,
    color: analyzing.Color = None,
) -> None:
    """Say what a change did: FIXED, IMPROVED, NO EFFECT, WORSE, NEW LEAK, or CAN'T TELL.

    Recordings and logs are read as by analyze. Several runs of a side count as one estimate with
    their spread. Ends with 0 (not worse), 1 (worse, or a new leak), 2 (unreadable) or 3 (can't
    tell).
    """
    from memdiag.recording.options import ReadOptions, parse_metric

    before, after = _named(sides or [], base or [], candidate or [])
    options = ReadOptions(
        x=x,
        metrics=tuple(parse_metric(text) for text in metric or ()),
        format=file_format,
        pattern=pattern,
        table=table,
    )
    compared = _compared(before, after, options)
    code = of_comparison(compared, cli_gate.settle(inconclusive=inconclusive).inconclusive)
    if json_file is not None:
        printing.write(json_file, _as_json(compared, code), "--json-file")
    if json:
        sys.stdout.write(_as_json(compared, code))
    else:
        from memdiag.report import comparison

        page = printing.Page(width=width, ascii_only=ascii_only, color=color)
        printing.show(page, lambda w, a: comparison.render(compared, width=w, ascii_only=a))
    raise typer.Exit(code)


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


def _compared(before: Sequence[str], after: Sequence[str], options: ReadOptions) -> Comparison:
    from memdiag.analysis.comparing import compare as compare_findings

    base, failures = _diagnosed(before, options)
    candidate, more = _diagnosed(after, options)
    failures += more
    if failures and not (base and candidate):
        first = failures[0]
        raise UnreadableInput(
            f"{first.source}: {first.message}", source=first.source, remedy=first.remedy
        )
    both = {Path(f.source).resolve() for f in base} & {Path(f.source).resolve() for f in candidate}
    if both:
        raise UsageError(
            f"{sorted(both)[0].name} is on both sides", remedy="name each run on one side only"
        )
    return replace(compare_findings(base, candidate), failures=tuple(failures))


def _diagnosed(
    arguments: Sequence[str], options: ReadOptions
) -> tuple[list[RecordingFinding], list[Failure]]:
    from memdiag.analysis.diagnose import diagnose
    from memdiag.recording.reading import expand, read

    found: list[RecordingFinding] = []
    failures: list[Failure] = []
    for argument in arguments:
        try:
            sources = expand([argument])
        except UnreadableInput as error:
            failures.append(_failure(argument, error))
            continue
        for source in sources:
            try:
                found.append(diagnose(read(source, options)))
            except UnreadableInput as error:
                failures.append(_failure(source, error))
    return found, failures


def _failure(source: str, error: UnreadableInput) -> Failure:
    where = "" if error.line is None else f"line {error.line}: "
    return Failure(source=source, message=where + error.message, remedy=error.remedy)


def _as_json(compared: Comparison, code: int) -> str:
    from memdiag.report import comparison_json, json

    return json.dumps(comparison_json.document(compared, code))
