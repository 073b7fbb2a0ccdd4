"""`memdiag compare`: did the change fix the growth, help, do nothing, or make it worse?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memdiag.cli.options import outputs
from memdiag.cli.options.declare import option, repeatable
from memdiag.cli.options.exit_codes import of_comparison
from memdiag.cli.options.gate import GateOptions, settle
from memdiag.cli.options.inputs import InputOptions, Inputs
from memdiag.cli.options.outputs import ReportOptions
from memdiag.cli.options.page import PageOptions
from memdiag.cli.output.messages import complain_of_failures
from memdiag.cli.output.printing import show
from memdiag.errors import Exit, UsageError
from memdiag.values.findings import RecordingFinding
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.values.comparison import Comparison
    from memdiag.values.measurements import Recording

USAGE = "[OPTIONS] BEFORE AFTER"
WITHOUT = {"phase_column", "planned_x", "why", "junitxml"} | {
    f.name for f in fields(GateOptions)
} - {"inconclusive"}

Runs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="BEFORE AFTER",
        help="Runs before and after the change: a file, a directory, or a quoted pattern each.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideOptions:
    """What is compared with what."""

    before: tuple[str, ...] = repeatable("--before", "FILE", "A run before the change. Repeatable.")
    after: tuple[str, ...] = repeatable("--after", "FILE", "A run after the change. Repeatable.")
    against: str = option(
        "--against",
        "NAME[=UNIT]",
        "The column after the change if it differs from --metric; one LOG may hold both.",
        default="",
    )


def compare(
    runs: Runs = None,
    *,
    sides: SideOptions,
    reading: InputOptions,
    gate: GateOptions,
    report: ReportOptions,
    page: PageOptions,
) -> None:
    """Compare memory before and after a change: FIXED, IMPROVED, NO EFFECT, WORSE, NEW LEAK, or
    INCONCLUSIVE.

    Recordings and logs are read as by analyze; --metric BEFORE --against AFTER compares two columns
    of one LOG. Several runs of a side count as one estimate with their spread. Exits with 0 (not
    worse), 1 (worse, or a new leak), 2 (unreadable) or 3 (can't tell).
    """
    runs, against = runs or [], sides.against
    if against and len(reading.metric) != 1:
        raise UsageError("--against requires --metric", remedy="--metric BEFORE --against AFTER")
    if against and len(runs) == 1:
        runs = runs * 2
    inputs = Inputs(reading)
    before, after = map(inputs.sources, _named(runs, sides))
    settled = settle(gate)
    reports = outputs.reports(report)
    outputs.require(report)
    outputs.check(reports, inputs=outputs.of_sources([*before, *after]), force=report.force)
    compared = _compared(before, after, inputs, against)
    code = of_comparison(compared, settled.inconclusive)
    for one in reports:
        from memdiag.report.formats.files import FORMATS

        if (render := FORMATS[one.where].compare) is not None:
            content = render(compared, code, report.picture_style)
            outputs.write(one, content, force=report.force)
    complain_of_failures(compared.failures)
    if report.json:
        from memdiag.report.formats import json_documents

        sys.stdout.write(json_documents.text(json_documents.comparison(compared, code)))
    else:
        from memdiag.report.formats import comparison_text

        detail = page.detail
        show(
            lambda w, a: comparison_text.render(compared, width=w, ascii_only=a, detail=detail),
            page,
        )
    raise typer.Exit(code)


_SIDES = (
    "memdiag compare before.csv after.csv\n"
    "several runs of a side: --before a.csv --before b.csv --after c.csv"
)


def _named(runs: Sequence[str], sides: SideOptions) -> tuple[Sequence[str], Sequence[str]]:
    if len(runs) == 2 and not (sides.before or sides.after):
        return runs[:1], runs[1:]
    if not runs and sides.before and sides.after:
        return sides.before, sides.after
    if not runs and (sides.before or sides.after):
        given, other = ("--before", "--after") if sides.before else ("--after", "--before")
        raise UsageError(f"{given} requires {other}", remedy=_SIDES)
    counted = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    raise UsageError(f"compare needs two runs, got {counted}", remedy=_SIDES)


def _compared(
    before: Sequence[str], after: Sequence[str], inputs: Inputs, against: str
) -> Comparison:
    from memdiag.analysis.comparison.compare import compare as compare_findings
    from memdiag.analysis.diagnose import diagnose
    from memdiag.recording.read_options import parse_metric

    base = inputs.findings(before, diagnose)
    if not against:
        candidate = inputs.findings(after, diagnose)
        _refuse_same(base, candidate)
    else:

        def judge(recording: Recording) -> RecordingFinding:
            return diagnose(_renamed(recording, base))

        options = replace(inputs.options, metrics=(parse_metric(against),))
        candidate = inputs.findings(after, judge, options)
        base, candidate = [_by_column(f) for f in base], [_by_column(f) for f in candidate]
    if inputs.failures and not (base and candidate):
        complain_of_failures(inputs.failures)
        raise typer.Exit(Exit.USAGE)
    return replace(compare_findings(base, candidate), failures=tuple(inputs.failures))


def _by_column(finding: RecordingFinding) -> RecordingFinding:
    """With the column in the name of the source: both columns may be in one log."""
    return replace(finding, source=f"{finding.series[0].column} of {finding.source}")


def _renamed(recording: Recording, base: Sequence[RecordingFinding]) -> Recording:
    """The chosen column under the name of the base's column."""
    if not base:
        return recording
    like = base[0].series[0]
    if {series.unit for series in recording.series} != {like.unit}:
        raise UsageError(
            f"{like.column} and {recording.series[0].column} have different units",
            remedy="give the unit: --metric BEFORE=MB --against AFTER=MB",
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
