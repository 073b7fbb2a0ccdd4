"""What `memdiag watch` does, from the first look at the process to the exit code."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memdiag.capture.launch.signals import Letter, Mailbox
from memdiag.capture.probelink.channel import find_channel, find_ring, owners_of
from memdiag.capture.process.attach import attach, command_line, environment, this_table
from memdiag.capture.process.tree import Process, ProcessTable
from memdiag.cli.measurement.instruments import Apparatus
from memdiag.cli.measurement.live_verdict import FinalRules, live_verdict
from memdiag.cli.measurement.log_tagging import Listening
from memdiag.cli.measurement.loop import Measurement, measure
from memdiag.cli.measurement.recorder import recorder
from memdiag.cli.measurement.threshold_alarms import Alarms
from memdiag.cli.options.recording_options import Options, recording_files
from memdiag.cli.output.conclude import STDERR, conclude, say
from memdiag.errors import MemdiagError
from memdiag.report.formats.status_line import LastRow, wanted
from memdiag.values.measurements import Ending

if TYPE_CHECKING:
    from memdiag.recording.native.atomic_file import RecordingFiles

_ENDING_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class Adopted:
    """A process of somebody else's making: looked at, and never touched."""

    def __init__(self, process: Process, table: ProcessTable) -> None:
        self._process = process
        self._table = table
        self._ended_by = ""

    @property
    def ending(self) -> Ending:
        """Why the watch ended, without a reason where the process did: how is its parent's to
        know."""
        return Ending(why=self._ended_by)

    def handle(self, letters: Sequence[Letter], pids: Collection[int]) -> Sequence[str]:
        """Any signal that asks memdiag to end ends the watch."""
        for letter in letters:
            if letter.number in _ENDING_SIGNALS and not self._ended_by:
                self._ended_by = f"memdiag stopped watching ({letter.number.name})"
        return ()

    def over(self) -> bool:
        """The process has ended, or memdiag was asked to stop."""
        return bool(self._ended_by) or self._table.resident_bytes(self._process.id) is None

    def pause_wanted(self) -> bool:
        """Never: its terminal is not ours."""
        return False

    def pause(self) -> None:
        """Nothing to do."""

    def end(self, why: str, pids: Collection[int]) -> None:
        """Stop watching; the process goes on."""
        self._ended_by = why


def follow(pid: int, options: Options, *, let_in: bool = False) -> int:
    """Watch process `pid`, record and judge it; the exit code. Raises CannotWatch.

    let_in: put the probe into it, if it has none.
    """
    from memdiag.recording.native.writer import default_path

    now = datetime.now(timezone.utc)
    files = recording_files(options, lambda: default_path(os.getpid(), now), say)
    try:
        with ExitStack() as stack:
            ending, failure = _record(pid, options, files, stack, let_in=let_in)
    except MemdiagError:  # there was nothing to be recorded
        files.discard()
        raise
    code = conclude(files, options, ending=ending, failure=failure)
    files.close()
    return code


def _record(
    pid: int, options: Options, files: RecordingFiles, stack: ExitStack, *, let_in: bool
) -> tuple[Ending, str]:
    mailbox = stack.enter_context(Mailbox(_ENDING_SIGNALS))
    listening = stack.enter_context(Listening(options.tags, follows=True))
    process = attach(pid, table := this_table())
    directory = find_channel(pid)
    notes: tuple[str, ...] = ()
    if let_in:
        directory, notes = _let_in(pid, directory, stack)
    apparatus = Apparatus(
        options,
        table=table,
        environ=environment(pid),
        directory=directory,
        owners=owners_of(pid),
        log=listening.log,
    )
    stack.enter_context(apparatus)
    is_shown = not options.quiet and wanted(STDERR, os.environ)
    row = LastRow(STDERR, is_wanted=partial(wanted, STDERR, os.environ))
    stack.callback(row.release)
    began_s = time.monotonic()
    about = {**apparatus.about(command_line(pid)), "pid": pid}
    measurement = Measurement(
        session=apparatus.session(pid, began_s=began_s, whole_channel=False),
        open_writer=recorder(files, about, options),
        row=row,
        interval_s=options.interval_s,
        began_s=began_s,
        alarms=Alarms(options.gate.thresholds, apparatus.limits),
        live=live_verdict(options) if is_shown or options.stop_on_leak else None,
        final_rules=FinalRules(files),
    )
    if is_shown:
        say(f"watching process {pid}; Ctrl-C ends the watch and reports")
        row.reserve()
    adopted = Adopted(process, apparatus.table)
    measure(adopted, measurement, mailbox, options, say=say, finish=listening.finish)
    known = apparatus.explained(adopted.ending, last=measurement.last_readings)
    ending = known if known is not None and known.why else Ending(why="the process has ended")
    measurement.close(
        ending,
        missing=apparatus.missing(),
        limits=apparatus.limits(),
        notes=(*notes, *apparatus.notes()),
        processes=apparatus.processes(),
    )
    return ending, measurement.failure


def _let_in(pid: int, known: Path | None, stack: ExitStack) -> tuple[Path, tuple[str, ...]]:
    """The channel of the process, with the probe in it, and what the recording is to note."""
    from memdiag.capture.probelink.guest_probe import attached_probe

    if known is not None and find_ring(known, pid) is not None:
        say("the probe is in the process already")
        return known, ()
    probe = stack.enter_context(attached_probe(pid))
    say(probe.note())
    if not probe.arrived:
        say("it comes in once the main thread runs Python code again")
    return probe.directory, (probe.note(),)
