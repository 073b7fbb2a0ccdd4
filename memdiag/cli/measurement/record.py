"""The one way in which `run` and `watch` record."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memdiag.capture.launch.signals import Mailbox
from memdiag.capture.logtags.printed_steps import PrintedSteps
from memdiag.cli.measurement.destination_process import DestinationProcesses
from memdiag.cli.measurement.display import display_of, is_live
from memdiag.cli.measurement.guard import Guard, action_process
from memdiag.cli.measurement.instruments import Instruments
from memdiag.cli.measurement.live_verdict import live_verdict
from memdiag.cli.measurement.loop import Measurement, measure
from memdiag.cli.measurement.subject import Subject
from memdiag.cli.measurement.tracker_feed import TrackerFeed
from memdiag.cli.options.actions import Level
from memdiag.cli.options.recording_options import RecordingOptions
from memdiag.cli.output.messages import STDERR
from memdiag.report.formats.status_line import wanted
from memdiag.values.measurements import Ending

if TYPE_CHECKING:
    from memdiag.recording.native.atomic_file import RecordingFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """How a recording ended. failure: why memdiag could not record all of it, "" if it could.

    stopped_at: the level at which `--on` has ended the target.
    """

    ending: Ending
    failure: str = ""
    stopped_at: Level | None = None


def record(
    subject: Subject,
    options: RecordingOptions,
    files: RecordingFiles,
    mailbox: Mailbox,
    trackers: DestinationProcesses | None = None,
) -> Recorded:
    """Record `subject` from its start to its end.

    The order matters: `prepare` forks before there is any thread, and everything that can fail is
    ready before the target starts.
    """
    with ExitStack() as stack:
        is_shown = not options.page.quiet and wanted(STDERR, os.environ)
        live = is_live(options.live, by_default=is_shown and subject.is_live_by_default)
        process = action_process(options.gate.reactions, mailbox.inherited_mask)
        access = subject.prepare(stack, is_shown=is_shown, is_live=live)
        display = display_of(access, stack, is_live=live)
        if process is not None:
            stack.callback(process.finish)
        own = {one.pids for one in (process, trackers) if one is not None}
        access = replace(access, strangers=access.strangers.union(display.pids, *own))
        instruments = Instruments(options, access, stack)
        is_required = options.requires_live_verdict
        verdict = None
        if is_shown or is_required:
            verdict = live_verdict(instruments.limits, is_required=is_required)
        about = instruments.about()
        if is_shown:
            display.reserve()
        began_s = time.monotonic()
        pid, running = subject.start()
        printed = PrintedSteps("self" if access.is_ours else pid)
        stack.callback(printed.close)
        session = instruments.session(pid, began_s=began_s)
        guard = Guard(options.gate.reactions, process, running.send)
        measurement = Measurement(
            options=options,
            files=files,
            about={**about, "pid": pid},
            instruments=instruments,
            session=session,
            display=display,
            began_s=began_s,
            live=verdict,
            guard=guard,
            feed=TrackerFeed.of(trackers, options.interval_s, access.command, pid),
        )
        measurement.tick()
        instruments.begin_watch()
        measure(running, measurement, mailbox)
        instruments.end_watch()
        subject.finish()
        measurement.look()  # what the probe has sent since the last tick
        notes = (*subject.last_notes(measurement), *guard.finish())
        if options.tags is None and not measurement.has_steps and (note := printed.note()):
            notes = (*notes, note)
        ending = instruments.explained(running.ending, session, measurement.last_readings)
        if ending == Ending():
            ending = Ending(why="the process has ended")
        measurement.close(ending, notes)
    return Recorded(ending=ending, failure=measurement.failure, stopped_at=guard.stops_at)
