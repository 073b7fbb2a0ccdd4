"""The one way in which `run` and `watch` record."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from memdiag.capture.launch.signals import Mailbox
from memdiag.cli.measurement.instruments import Instruments
from memdiag.cli.measurement.live_verdict import live_verdict
from memdiag.cli.measurement.loop import Measurement, measure
from memdiag.cli.measurement.subject import Subject
from memdiag.cli.options.recording_options import RecordingOptions
from memdiag.cli.output.messages import STDERR
from memdiag.report.formats.status_line import LastRow, wanted
from memdiag.values.measurements import Ending

if TYPE_CHECKING:
    from memdiag.recording.native.atomic_file import RecordingFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """How a recording ended. failure: why memdiag could not record all of it, "" if it could."""

    ending: Ending
    failure: str = ""


def record(
    subject: Subject, options: RecordingOptions, files: RecordingFiles, mailbox: Mailbox
) -> Recorded:
    """Record `subject` from its start to its end.

    The order matters: `prepare` forks before there is any thread, and everything that can fail is
    ready before the target starts.
    """
    with ExitStack() as stack:
        is_shown = not options.quiet and wanted(STDERR, os.environ)
        access = subject.prepare(stack, is_shown=is_shown)
        live = live_verdict(options) if is_shown or options.stop_on_leak else None
        instruments = Instruments(options, access, stack)
        row = LastRow(STDERR, is_wanted=partial(wanted, STDERR, os.environ))
        stack.callback(row.release)
        if is_shown:
            row.reserve()
        about = instruments.about()
        began_s = time.monotonic()
        pid, running = subject.start()
        session = instruments.session(pid, began_s=began_s)
        measurement = Measurement(
            options=options,
            files=files,
            about={**about, "pid": pid},
            instruments=instruments,
            session=session,
            row=row,
            began_s=began_s,
            live=live,
        )
        measure(running, measurement, mailbox)
        subject.finish()
        measurement.look()  # what the probe has sent since the last tick
        notes = subject.last_notes(measurement)
        ending = instruments.explained(running.ending, session, measurement.last_readings)
        if ending == Ending():
            ending = Ending(why="the process has ended")
        measurement.close(ending, notes)
    return Recorded(ending=ending, failure=measurement.failure)
