"""`memdiag analyze`: judge existing recordings and logs."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from memdiag.cli.options import outputs
from memdiag.cli.options.exit_codes import exit_code
from memdiag.cli.options.fleet import FleetOptions
from memdiag.cli.options.gate import GateOptions, settle
from memdiag.cli.options.inputs import InputOptions, Inputs
from memdiag.cli.options.outputs import ReportOptions
from memdiag.cli.options.page import PageOptions
from memdiag.cli.output.ci_reports import publish
from memdiag.cli.output.judge import judged
from memdiag.cli.output.messages import complain_of_failures
from memdiag.cli.output.printing import show
from memdiag.values.findings import Diagnosis, RecordingFinding
from memdiag.values.thresholds import one_gpu

if TYPE_CHECKING:
    from memdiag.values.measurements import Recording

USAGE = "[OPTIONS] FILE..."
WITHOUT = ("warn_at", "critical_at", "on", "exit_code")

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Recordings, CSV logs, directories or patterns of them, @FILE with one of these on "
        "each line, URLs (s3://...), or - for standard input.",
    ),
]


def analyze(
    files: Files,
    reading: InputOptions,
    gate: GateOptions,
    fleet: FleetOptions,
    report: ReportOptions,
    page: PageOptions,
) -> None:
    """Judge recordings, or any log with a column of steps or time and columns of memory.

    Columns and units are recognized by their names. Each file gets its own verdict. A file that
    cannot be read does not stop the others, but the exit code is then 2. Thousands of files are
    judged by --jobs or an --engine and shown as a summary.
    """
    settled = settle(gate)
    if fleet.are_for(files):
        from memdiag.cli.output import fleet as many

        many.refuse(fleet, gate, report, settled)
        raise typer.Exit(many.analyze_many(files, fleet, reading, settled, report, page))
    inputs = Inputs(reading)
    sources = inputs.sources(files)
    reports = outputs.reports(report)
    outputs.require(report)
    shows_readings = outputs.shows_readings(report)
    outputs.check(reports, inputs=outputs.of_sources(sources), force=report.force)

    def judge(recording: Recording) -> RecordingFinding:
        columns = sorted({s.metric for s in recording.series if one_gpu(s.metric)})
        planned_x = recording.planned_x if reading.planned_x is None else reading.planned_x
        limits = recording.limits + settled.limits(columns)
        known = replace(recording, limits=limits, planned_x=planned_x)
        return judged(known, settled, readings=shows_readings)

    found = inputs.findings(sources, judge)
    diagnosis = Diagnosis(recordings=tuple(found), failures=tuple(inputs.failures))
    code = exit_code(diagnosis, settled.failing)
    unwritten = publish(diagnosis, settled, report, code)
    complain_of_failures(diagnosis.failures)
    if report.json:
        from memdiag.report.formats import json_documents

        sys.stdout.write(json_documents.text(json_documents.diagnosis(diagnosis, code)))
    else:
        from memdiag.report.formats import terminal

        detail, why = page.detail, page.why
        show(
            lambda w, a: terminal.render(diagnosis, width=w, ascii_only=a, detail=detail, why=why),
            page,
        )
    if unwritten:
        raise unwritten[0]
    raise typer.Exit(code)
