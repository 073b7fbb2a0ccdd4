"""The end of `run` and `watch`: the recording is read back, judged, reported, and gated.

Reading back what was written is deliberate: the verdict is the same that `analyze` gives for this
file, today and on another machine.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from memdiag.cli import lazy_imports
from memdiag.cli.options.exit_codes import exit_code
from memdiag.cli.options.gate import Gate
from memdiag.cli.options.recording_options import RecordingOptions
from memdiag.cli.output.ci_reports import publish
from memdiag.cli.output.judge import judged
from memdiag.cli.output.messages import say
from memdiag.cli.output.printing import show
from memdiag.errors import Exit, UnreadableInput
from memdiag.report.formats import json_documents, terminal
from memdiag.report.sections import budgets, headline
from memdiag.report.text.screen import Screen
from memdiag.values.findings import Diagnosis, RecordingFinding
from memdiag.values.measurements import Ending
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from rich.console import Group

    from memdiag.recording.native.atomic_file import RecordingFiles


def diagnosed(files: RecordingFiles, gate: Gate, ending: Ending | None) -> Diagnosis:
    """The diagnosis of the recording. An empty recording is inconclusive.

    ending: how the target ended, if the recording could not be completed with it.
    """
    lazy_imports.import_numpy()
    from memdiag.analysis.forecasting.budgets import hold
    from memdiag.recording.read import read

    source = str(files.written)
    try:
        recording = read(str(files.readable()))
    except UnreadableInput as error:
        nothing = RecordingFinding(
            source=source,
            verdict=Verdict.INCONCLUSIVE,
            confidence=0.0,
            series=(),
            decided_by=None,
            notes=(printable(error.message),),
            ending=ending,
        )
        return Diagnosis(recordings=(hold(nothing, gate.budgets),))
    known = replace(recording, source=source, ending=ending or recording.ending)
    return Diagnosis(recordings=(judged(known, gate),))


def conclude(
    files: RecordingFiles,
    options: RecordingOptions,
    ending: Ending,
    *,
    decided: int | None = None,
    failure: str = "",
) -> int:
    """Report on the recording and return the exit code.

    ending: how the target ended. decided: the exit code if the findings do not decide it.
    failure: why memdiag could not measure all of it, "" if it could.
    """
    gate = options.gate
    diagnosis = diagnosed(files, gate, ending)
    code = decided if decided is not None else _of_findings(diagnosis, gate, failure)
    if failure:
        say(f"measuring failed: {failure}")
        say("the report covers only what was recorded before")
    if options.report.json:
        sys.stdout.write(json_documents.text(json_documents.diagnosis(diagnosis, code)))
    else:
        print(file=sys.stderr)
        show(lambda w, a: _report(diagnosis, Screen(width=w, ascii_only=a), options), stderr=True)
    if files.is_there():
        say(f"recorded to {printable(str(files.written))}")
    else:
        say(f"the recording was removed or replaced meanwhile ({printable(str(files.written))})")
    for error in publish(diagnosis, gate, options.report, code):
        say(printable(error.message))
    return code


def _of_findings(diagnosis: Diagnosis, gate: Gate, failure: str) -> int:
    code = exit_code(diagnosis, gate.failing)
    if code == Exit.CANNOT_MEASURE and not failure:
        # It was measured, and ended before there was anything to compare.
        code = int(Exit.INCONCLUSIVE if Verdict.INCONCLUSIVE in gate.failing else Exit.NO_LEAK)
    if failure and code in (Exit.NO_LEAK, Exit.INCONCLUSIVE):
        # A stable verdict on a part of the run does not cover the rest of it.
        code = int(Exit.CANNOT_MEASURE)
    return code


def _report(diagnosis: Diagnosis, screen: Screen, options: RecordingOptions) -> Group:
    """The report, or its first line if the user wants a quiet run."""
    from rich.console import Group

    if not options.quiet:
        return terminal.render(diagnosis, width=screen.width, ascii_only=screen.ascii_only)
    lines = []
    for found in diagnosis.recordings:
        lines += headline.line(found, screen) + budgets.lines(found, screen, open_only=True)
    return Group(*lines)
