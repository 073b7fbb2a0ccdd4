"""`memdiag compare`: did the change fix the growth, help, do nothing, or make it worse?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memdiag.cli.options import outputs
from memdiag.cli.options.exit_codes import of_comparison
from memdiag.cli.options.gate import GateOptions, settle
from memdiag.cli.options.inputs import InputOptions, Inputs
from memdiag.cli.options.outputs import ReportOptions
from memdiag.cli.output.printing import PageOptions, show
from memdiag.errors import UnreadableInput, UsageError
from memdiag.values.findings import RecordingFinding
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.values.comparison import Comparison
    from memdiag.values.measurements import Recording

WITHOUT = {"phase_column", "why"} | {f.name for f in fields(GateOptions)} - {"inconclusive"}

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
        help="The candidate's column if it differs from --metric; one LOG may hold both.",
    ),
]


def compare(
    sides: Sides = None,
    base: Base = None,
    candidate: Candidate = None,
    *,
    reading: InputOptions,
    against: Against = "",
    gate: GateOptions,
    report: ReportOptions,
    page: PageOptions,
) -> None:
    """Compare memory before and after a change: FIXED, IMPROVED, NO EFFECT, WORSE, NEW LEAK, or
    CAN'T TELL.

    Recordings and logs are read as by analyze; --metric BEFORE --against AFTER compares two columns
    of one LOG. Several runs of a side count as one estimate with their spread. Exits with 0 (not
    worse), 1 (worse, or a new leak), 2 (unreadable) or 3 (can't tell).
    """
    sides = sides or []
    if against and len(reading.metric) != 1:
        raise UsageError(
            "--against needs the base's column", remedy="name it: --metric BEFORE --against AFTER"
        )
    if against and len(sides) == 1:
        sides = sides * 2
    inputs = Inputs(reading)
    before, after = map(inputs.sources, _named(sides, base or [], candidate or []))
    settled = settle(gate)
    reports = outputs.reports(report, settled)
    outputs.check(reports, inputs=outputs.of_sources([*before, *after]), force=report.force)
    compared = _compared(before, after, inputs, against)
    code = of_comparison(compared, settled.inconclusive)
    for one in reports:
        outputs.write(one, _as_json(compared, code), force=report.force)
    if report.json:
        sys.stdout.write(_as_json(compared, code))
    else:
        from memdiag.report.formats import comparison_text

        show(lambda w, a: comparison_text.render(compared, width=w, ascii_only=a), page)
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
        first = inputs.failures[0]
        raise UnreadableInput(
            f"{first.source}: {first.message}", source=first.source, remedy=first.remedy
        )
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


def _as_json(compared: Comparison, code: int) -> str:
    from memdiag.report.formats import comparison_json, diagnosis_json

    return diagnosis_json.dumps(comparison_json.document(compared, code))
