"""The end of `run` and `watch`: the recording is read back, judged, reported, and gated.

Reading back what was written is deliberate: the verdict is the same that `analyze` gives for this
file, today and on another machine.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from memdiag.cli import lazy_imports
from memdiag.cli.options import outputs
from memdiag.cli.options.exit_codes import exit_code
from memdiag.cli.options.gate import Gate
from memdiag.cli.options.recording_options import RecordingOptions
from memdiag.cli.output.ci_reports import publish
from memdiag.cli.output.judge import judged
from memdiag.cli.output.messages import complain, say
from memdiag.cli.output.printing import show
from memdiag.errors import Exit, ReadError, TooShort
from memdiag.report.formats import json_documents, terminal
from memdiag.report.text.screen import Detail
from memdiag.values.findings import Diagnosis, RecordingFinding
from memdiag.values.measurements import Ending
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from memdiag.recording.native.atomic_file import RecordingFiles


def diagnosed(
    files: RecordingFiles, gate: Gate, ending: Ending | None, *, readings: bool = False
) -> Diagnosis:
    """The diagnosis of the recording. An empty recording is inconclusive.

    ending: how the target ended, if the recording could not be completed with it.
    readings: with the readings that pictures show.
    """
    lazy_imports.import_numpy()
    from memdiag.analysis.forecasting.budgets import hold
    from memdiag.recording.read import read

    source = str(files.written)
    try:
        recording = read(str(files.readable()))
    except ReadError as error:
        nothing = RecordingFinding(
            source=source,
            verdict=Verdict.INCONCLUSIVE,
            confidence=0.0,
            series=(),
            decided_by=None,
            notes=() if isinstance(error, TooShort) else (printable(error.message),),
            ending=ending,
        )
        return Diagnosis(recordings=(hold(nothing, gate.budgets),))
    known = replace(recording, source=source, ending=ending or recording.ending)
    return Diagnosis(recordings=(judged(known, gate, readings=readings),))


def conclude(
    files: RecordingFiles,
    options: RecordingOptions,
    ending: Ending,
    *,
    decided: int | None = None,
    failure: str = "",
    report_to: Callable[[Diagnosis, int], None] = lambda _diagnosis, _code: None,
) -> int:
    """Report on the recording and return the exit code.

    ending: how the target ended. decided: the exit code if the findings do not decide it.
    failure: why memdiag could not measure all of it, "" if it could.
    report_to: takes the diagnosis and the exit code last.
    """
    gate = options.gate
    readings = bool(options.destinations) or outputs.shows_readings(options.report)
    diagnosis = diagnosed(files, gate, ending, readings=readings)
    code = decided if decided is not None else _of_findings(diagnosis, gate, failure)
    document = json_documents.text(json_documents.diagnosis(diagnosis, code))
    if failure:
        say(f"measuring failed: {failure}")
        say("the report covers only what was recorded before")
    is_there = files.is_there()
    if diagnosis.recordings[0].is_empty:
        files.forget()
    else:
        with contextlib.suppress(OSError):  # the recording has all of it
            files.keep_report(document)
    detail, page = options.page.detail, options.page
    if options.report.json:
        sys.stdout.write(document)
        detail = Detail.VERDICT
    elif detail is not Detail.VERDICT:
        print(file=sys.stderr)
    if not is_there:
        say(f"the recording was removed or replaced meanwhile ({printable(str(files.written))})")
    for error in publish(diagnosis, gate, options.report, code):
        complain(printable(error.message))
    show(
        lambda w, a: terminal.render(diagnosis, width=w, ascii_only=a, detail=detail, why=page.why),
        page,
        stderr=True,
    )
    report_to(diagnosis, code)
    return code


def _of_findings(diagnosis: Diagnosis, gate: Gate, failure: str) -> int:
    code = exit_code(diagnosis, gate.failing)
    is_unmeasured = any(one.unmeasured is not None for one in diagnosis.recordings)
    if code == Exit.CANNOT_MEASURE and not (failure or is_unmeasured):
        # It was measured, and ended before there was anything to compare.
        code = int(Exit.INCONCLUSIVE if Verdict.INCONCLUSIVE in gate.failing else Exit.NO_LEAK)
    if failure and code in (Exit.NO_LEAK, Exit.INCONCLUSIVE):
        # A stable verdict on a part of the run does not cover the rest of it.
        code = int(Exit.CANNOT_MEASURE)
    return code
