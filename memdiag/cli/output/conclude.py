"""The end of `run` and `watch`: the recording is read back, judged, reported, and gated.

Reading back what was written is deliberate: the verdict given here is the one that `analyze`
gives of the same file, today and on another machine.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console

from memdiag.cli import lazy_imports
from memdiag.cli.options.exit_codes import exit_code
from memdiag.cli.options.gate import Gate
from memdiag.cli.options.recording_options import Options
from memdiag.cli.output.ci_reports import failing_by, publish
from memdiag.errors import Exit, UnreadableInput
from memdiag.report.formats import json_documents, terminal
from memdiag.report.sections import budgets, headline
from memdiag.report.text.screen import Screen
from memdiag.values.budgets import Budget
from memdiag.values.findings import Diagnosis, RecordingFinding
from memdiag.values.measurements import Ending
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from memdiag.recording.native.atomic_file import RecordingFiles

STDERR = 2


def say(message: str) -> None:
    """One line of commentary on stderr."""
    print(f"memdiag: {message}", file=sys.stderr, flush=True)


def diagnosed(
    files: RecordingFiles,
    ending: Ending | None,
    allowed: Sequence[Budget] = (),
    model_params: int | None = None,
) -> Diagnosis:
    """What the recording shows. One with nothing in it is a doubt."""
    lazy_imports.import_numpy()
    from memdiag.analysis.attribution.known_sizes import told_in_models
    from memdiag.analysis.diagnose import diagnose
    from memdiag.analysis.forecasting.budgets import hold
    from memdiag.recording.read import read

    shown = str(files.written)
    try:
        recording = replace(read(str(files.readable())), source=shown)
    except UnreadableInput as error:
        return Diagnosis(recordings=(hold(_nothing(shown, error, ending), allowed),))
    found = told_in_models(replace(diagnose(recording), ending=ending), model_params)
    return Diagnosis(recordings=(hold(found, allowed),))


def _nothing(source: str, error: UnreadableInput, ending: Ending | None) -> RecordingFinding:
    return RecordingFinding(
        source=source,
        verdict=Verdict.INCONCLUSIVE,
        confidence=0.0,
        series=(),
        decided_by=None,
        notes=(printable(error.message),),
        ending=ending,
    )


def conclude(
    files: RecordingFiles,
    options: Options,
    *,
    ending: Ending | None,
    decided: int | None = None,
    failure: str = "",
) -> int:
    """Report on the recording and return the exit code.

    ending: how the target ended. decided: the exit code where the findings do not decide it.
    failure: why memdiag could not measure all of it, "" where it could.
    """
    gate = options.gate
    diagnosis = diagnosed(files, ending, gate.budgets, gate.model_params)
    code = decided if decided is not None else _of_findings(diagnosis, gate, failure)
    if failure:
        say(f"measuring failed: {failure}")
        say("what follows is about what was recorded before")
    if options.json:
        sys.stdout.write(json_documents.text(json_documents.diagnosis(diagnosis, code)))
    else:
        show(diagnosis, quiet=options.quiet)
    if files.is_there():
        say(f"recorded to {printable(str(files.written))}")
    else:
        say(f"the recording was removed or replaced meanwhile ({printable(str(files.written))})")
    for error in publish(diagnosis, gate, code, options.json_file, force=options.force):
        say(printable(error.message))
    return code


def _of_findings(diagnosis: Diagnosis, gate: Gate, failure: str) -> int:
    code = exit_code(diagnosis, inconclusive=gate.inconclusive, fail_on=gate.fail_on)
    if code == Exit.CANNOT_MEASURE and not failure:
        # It was measured, and ended before there was anything to compare.
        code = int(Exit.INCONCLUSIVE if Verdict.INCONCLUSIVE in failing_by(gate) else Exit.NO_LEAK)
    if failure and code in (Exit.NO_LEAK, Exit.INCONCLUSIVE):
        # A calm verdict on a part of the run says nothing of the rest of it.
        code = int(Exit.CANNOT_MEASURE)
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
