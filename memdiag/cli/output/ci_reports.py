"""Reports for CI: files, a job summary, annotations."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from memdiag import safe_open
from memdiag.cli.options.gate import Gate
from memdiag.cli.options.outputs import ReportOptions, reports, write
from memdiag.errors import MemdiagError
from memdiag.values.findings import Diagnosis
from memdiag.values.sanitize import printable


def publish(
    diagnosis: Diagnosis, gate: Gate, options: ReportOptions, code: int
) -> list[MemdiagError]:
    """Write the reports that were requested, and those that CI offers a place for. Returns the
    errors of reports that could not be written.

    code: the exit code that the reports state.
    """
    failed = write_reports(diagnosis, gate, options, code)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY", ""):
        from memdiag.report.formats import markdown

        _append(Path(summary), markdown.document(diagnosis))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from memdiag.report.formats import github_annotations

        # On stderr: stdout belongs to the target, or is pure JSON. GitHub reads both.
        for line in github_annotations.commands(diagnosis, failing=gate.failing):
            print(line, file=sys.stderr)
    return failed


def write_reports(
    diagnosis: Diagnosis, gate: Gate, options: ReportOptions, code: int
) -> list[MemdiagError]:
    """Write the reports that were requested. Returns the errors of those that could not be."""
    failed = []
    for report in reports(options):
        from memdiag.report.formats.files import FORMATS, Outcome  # only if there is one

        outcome = Outcome(
            diagnosis=diagnosis,
            failing=gate.failing,
            exit_code=code,
            picture_style=options.picture_style,
            picture=_picture(report.path, options),
        )
        try:
            write(report, FORMATS[report.where].render(outcome), force=options.force)
        except MemdiagError as error:
            failed.append(error)
    return failed


def _picture(report: Path, options: ReportOptions) -> str:
    """The path from a report to the picture that is written with it, "" without one."""
    picture = options.png or options.svg
    return "" if picture is None else os.path.relpath(picture, report.parent)


def _append(path: Path, text: str) -> None:
    """Append to the job summary. A failure does not fail the job."""
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        with safe_open.closing(os.open(path, flags, 0o666)) as fd:
            safe_open.write_all(fd, f"{text}\n".encode(errors="backslashreplace"))
    except OSError as error:
        print(
            f"memdiag: the step summary could not be written: {printable(str(error))}",
            file=sys.stderr,
        )
