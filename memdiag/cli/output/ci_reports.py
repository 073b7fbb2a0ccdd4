"""What CI wants beside the report: files, a job summary, annotations."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from memdiag import safe_open
from memdiag.cli.options.exit_codes import FailOn, Inconclusive
from memdiag.cli.options.gate import Gate
from memdiag.cli.options.outputs import reports, write
from memdiag.errors import MemdiagError
from memdiag.values.findings import Diagnosis, Standing
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict


def publish(
    diagnosis: Diagnosis, gate: Gate, code: int, json_file: Path | None, *, force: bool
) -> list[MemdiagError]:
    """Write the reports that were asked for and what CI offers a place for: what could not be
    written, while the others are.

    code: the exit code that the reports state. force: files may be replaced that memdiag did not
    write.
    """
    failing = failing_by(gate)
    failed = []
    for report in reports(json_file, gate):
        try:
            write(report, _text(report.where, diagnosis, failing, code), force=force)
        except MemdiagError as error:
            failed.append(error)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY", ""):
        from memdiag.report.formats import markdown

        _append(Path(summary), markdown.document(diagnosis))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from memdiag.report.formats import github_annotations

        # On stderr: stdout is the target's own, or pure JSON. GitHub reads both.
        for line in github_annotations.commands(diagnosis, failing=failing):
            print(line, file=sys.stderr)
    return failed


def _text(
    option: str, diagnosis: Diagnosis, failing: frozenset[Verdict | Standing], code: int
) -> str:
    if option == "--junitxml":
        from memdiag.report.formats import junit

        return junit.document(diagnosis, failing=failing)
    if option == "--markdown":
        from memdiag.report.formats import markdown

        return markdown.document(diagnosis)
    from memdiag.report.formats import json_documents

    return json_documents.text(json_documents.diagnosis(diagnosis, code))


def failing_by(gate: Gate) -> frozenset[Verdict | Standing]:
    """The verdicts and standings that fail a command by this gate."""
    failing: set[Verdict | Standing] = set()
    if FailOn.LEAK in gate.fail_on:
        failing.add(Verdict.LEAK)
    if FailOn.WARMUP in gate.fail_on:
        failing.add(Verdict.WARMUP)
    if FailOn.BUDGET in gate.fail_on:
        failing.add(Standing.BROKEN)
    if gate.inconclusive is Inconclusive.FAIL:
        failing |= {Verdict.INCONCLUSIVE} if FailOn.INCONCLUSIVE in gate.fail_on else set()
        failing |= {Standing.UNCLEAR} if FailOn.BUDGET in gate.fail_on else set()
    return frozenset(failing)


def _append(path: Path, text: str) -> None:
    """To the job's summary; a runner that can't take it does not fail the job."""
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        with safe_open.closing(os.open(path, flags, 0o666)) as fd:
            safe_open.write_all(fd, f"{text}\n".encode(errors="backslashreplace"))
    except OSError as error:
        print(
            f"memdiag: the step summary could not be written: {printable(str(error))}",
            file=sys.stderr,
        )
