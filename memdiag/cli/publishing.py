"""What CI wants beside the report: files, a job summary, annotations."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from memdiag.cli.exits import FailOn, Inconclusive
from memdiag.cli.gate import Gate
from memdiag.cli.printing import write
from memdiag.findings import Diagnosis, Standing, Verdict
from memdiag.printable import printable


def publish(diagnosis: Diagnosis, gate: Gate, environ: Mapping[str, str]) -> None:
    """Write what was asked for and what CI offers a place for. Raises CannotMeasure."""
    failing = failing_by(gate)
    summary = environ.get("GITHUB_STEP_SUMMARY", "")
    if gate.junitxml is not None:
        from memdiag.report import junit

        write(gate.junitxml, junit.document(diagnosis, failing=failing), "--junitxml")
    if gate.markdown is not None or summary:
        from memdiag.report import markdown

        text = markdown.document(diagnosis)
        if gate.markdown is not None:
            write(gate.markdown, text, "--markdown")
        if summary:
            _append(Path(summary), text)
    if environ.get("GITHUB_ACTIONS") == "true":
        from memdiag.report import github

        # On stderr: stdout is the target's own, or pure JSON. GitHub reads both.
        for line in github.commands(diagnosis, failing=failing):
            print(line, file=sys.stderr)


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
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text + "\n")
    except OSError as error:
        print(
            f"memdiag: the step summary could not be written: {printable(str(error))}",
            file=sys.stderr,
        )
