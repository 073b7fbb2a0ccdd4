"""The end of `run` and `watch`: the recording is read back, judged, reported, and gated.

Reading back what was written is deliberate: the verdict given here is the one that `analyze`
gives of the same file, today and on another machine.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from memdiag.budgets import Budget
from memdiag.cli import loading
from memdiag.cli.exits import exit_code
from memdiag.cli.options import Options
from memdiag.cli.publishing import failing_by, publish
from memdiag.errors import CannotMeasure, Exit, UnreadableInput
from memdiag.findings import Diagnosis, RecordingFinding, Verdict
from memdiag.model import Ending
from memdiag.printable import printable
from memdiag.report import budgets, headline, terminal
from memdiag.report import json as json_report
from memdiag.report.screen import Screen

STDERR = 2


def say(message: str) -> None:
    """One line of commentary on stderr."""
    print(f"memdiag: {message}", file=sys.stderr, flush=True)


def diagnosed(
    path: Path,
    ending: Ending | None,
    allowed: Sequence[Budget] = (),
    model_params: int | None = None,
) -> Diagnosis:
    """What the recording at `path` shows. A recording with nothing in it is a doubt."""
    loading.import_numpy()
    from memdiag.analysis.budgeting import hold
    from memdiag.analysis.diagnose import diagnose
    from memdiag.analysis.quantum import told_in_models
    from memdiag.recording.reading import read

    try:
        recording = read(str(path))
    except UnreadableInput as error:
        return Diagnosis(recordings=(hold(_nothing(path, error, ending), allowed),))
    found = told_in_models(replace(diagnose(recording), ending=ending), model_params)
    return Diagnosis(recordings=(hold(found, allowed),))


def _nothing(path: Path, error: UnreadableInput, ending: Ending | None) -> RecordingFinding:
    return RecordingFinding(
        source=str(path),
        verdict=Verdict.INCONCLUSIVE,
        confidence=0.0,
        series=(),
        decided_by=None,
        notes=(printable(error.message),),
        ending=ending,
    )


def conclude(
    path: Path,
    options: Options,
    *,
    ending: Ending | None,
    command: Sequence[str] = (),
    stopped_by_us: bool = False,
    interrupted: bool = False,
    failure: str = "",
) -> int:
    """Report on the recording and return the exit code.

    ending: how the target ended; `command`: what was started, empty when it was adopted.
    failure: why memdiag could not measure all of it, "" where it could.
    """
    gate = options.gate
    diagnosis = diagnosed(path, ending, gate.budgets, gate.model_params)
    code = exit_code(
        diagnosis,
        inconclusive=gate.inconclusive,
        fail_on=gate.fail_on,
        decider=gate.decider,
        command=ending if command else None,
        stopped_by_us=stopped_by_us,
        interrupted=interrupted,
    )
    if code == Exit.CANNOT_MEASURE and not failure:
        # It was measured, and ended before there was anything to compare.
        code = int(Exit.INCONCLUSIVE if Verdict.INCONCLUSIVE in failing_by(gate) else Exit.NO_LEAK)
    if failure:
        say(f"measuring failed: {failure}")
        say("what follows is about what was recorded before")
        # A calm verdict on a part of the run says nothing of the rest of it.
        code = int(Exit.CANNOT_MEASURE) if code in (Exit.NO_LEAK, Exit.INCONCLUSIVE) else code
    if options.json:
        sys.stdout.write(json_report.text(diagnosis, code))
    else:
        show(diagnosis, quiet=options.quiet)
    say(f"recorded to {printable(str(path))}")
    if options.json_file is not None:
        _write_json(options.json_file, diagnosis, code)
    try:
        publish(diagnosis, gate, os.environ)
    except CannotMeasure as error:
        say(printable(error.message))
    return code


def show(diagnosis: Diagnosis, *, quiet: bool) -> None:
    """Print the report to stderr: all of it, or its first line."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    ascii_only = not (console.encoding or "").lower().startswith("utf")
    width = console.width if console.is_terminal else shutil.get_terminal_size((80, 24)).columns
    console.print()
    if quiet:
        screen = Screen(width=width, ascii_only=ascii_only)
        for found in diagnosis.recordings:
            lines = headline.line(found, screen) + budgets.lines(found, screen, open_only=True)
            for text in lines:
                console.print(text)
    else:
        console.print(terminal.render(diagnosis, width=width, ascii_only=ascii_only))


def _write_json(path: Path, diagnosis: Diagnosis, code: int) -> None:
    try:
        path.write_text(json_report.text(diagnosis, code), encoding="utf-8")
    except OSError as error:
        say(f"could not write {printable(str(path))}: {error.strerror}")
