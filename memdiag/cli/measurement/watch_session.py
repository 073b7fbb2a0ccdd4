"""What `memdiag watch` does, from the first look at the process to the exit code."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memdiag.capture.launch.signals import Letter, Mailbox
from memdiag.capture.launch.target import Termination, signal_all
from memdiag.capture.probelink.channel import find_channel, find_ring, owners_of
from memdiag.capture.process.attach import attach, command_line, environment, this_table
from memdiag.capture.process.tree import Process
from memdiag.cli.measurement.destination_process import DestinationProcesses
from memdiag.cli.measurement.record import record
from memdiag.cli.measurement.subject import Access, Running, Subject, tag_sources
from memdiag.cli.measurement.tracker_feed import report_to
from memdiag.cli.options.exit_codes import before_findings
from memdiag.cli.options.recording_options import RecordingOptions, recording_files
from memdiag.cli.output.conclude import conclude
from memdiag.cli.output.messages import say
from memdiag.errors import MemdiagError
from memdiag.values.measurements import Ending

if TYPE_CHECKING:
    from memdiag.cli.measurement.loop import Measurement

ENDING_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class RunningProcess(Subject):
    """A process that memdiag did not start: measured, and not touched without --attach."""

    is_live_by_default = True

    def __init__(self, pid: int, options: RecordingOptions) -> None:
        self._pid = pid
        self._options = options
        self._ended_by = self._stopped_by = ""
        self._termination = Termination()
        self._left: Collection[int] = ()
        self._notes: tuple[str, ...] = ()

    def prepare(self, stack: ExitStack, *, is_shown: bool, is_live: bool) -> Access:
        """Raises CannotWatch."""
        _, self._log = tag_sources(self._options.tags, stack, from_tail=True)
        self._table = this_table()
        self._process: Process = attach(self._pid, self._table)
        directory = find_channel(self._pid)
        if self._options.attach:
            directory = self._inject(directory, stack)
        if is_shown and not is_live:
            say(f"watching process {self._pid}; press Ctrl-C to stop watching and see the report")
        return Access(
            command=command_line(self._pid),
            environ=environment(self._pid),
            table=self._table,
            directory=directory,
            owners=owners_of(self._pid),
            log=self._log,
            strangers=frozenset({os.getpid()}),  # where the process has started memdiag
            is_ours=False,
        )

    def start(self) -> tuple[int, Running]:
        """The process runs already."""
        return self._pid, self

    @property
    def ending(self) -> Ending:
        """Why the watch ended, without a reason if the process did: only its parent learns how."""
        return Ending(why=self._ended_by or self._stopped_by)

    def handle(self, letters: Sequence[Letter], pids: Collection[int]) -> Sequence[str]:
        """Any signal that asks memdiag to end ends the watch."""
        for letter in letters:
            if letter.number in ENDING_SIGNALS and not self._ended_by:
                self._ended_by = f"memdiag stopped watching ({_name(letter.number)})"
        return ()

    def over(self) -> bool:
        """Return True if the process (and the tree, if memdiag ends it) has ended, or memdiag was
        asked to stop watching.
        """
        if self._termination.has_begun and self._left:
            return bool(self._ended_by) or self._termination.is_over
        return bool(self._ended_by) or self._table.resident_bytes(self._process.id) is None

    def pause_wanted(self) -> bool:
        """Never: it has another terminal."""
        return False

    def uses_terminal(self) -> bool:
        """Never: it has another terminal."""
        return False

    def pause(self) -> None:
        """Never called."""

    def resume(self) -> None:
        """Never called."""

    def end(self, why: str, pids: Collection[int]) -> None:
        """Stop watching; the process continues."""
        self._ended_by = why

    def stop(self, why: str, pids: Collection[int]) -> None:
        """End the process and its descendants."""
        self._stopped_by, self._left = why, pids
        self._termination.advance(pids)

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to the process, unless another one has its pid."""
        is_there = self._table.resident_bytes(self._process.id) is not None
        return is_there and signal_all([self._pid], number)

    def finish(self) -> None:
        """Read the last lines of the log."""
        if self._log is not None:
            self._log.finish()

    def last_notes(self, measurement: Measurement) -> tuple[str, ...]:
        """How the probe was injected."""
        return self._notes

    def _inject(self, known: Path | None, stack: ExitStack) -> Path | None:
        """The channel of the process, with the probe in it."""
        from memdiag.capture.probelink.guest_probe import attached_probe

        if known is not None and find_ring(known, self._pid) is not None:
            say("the probe is in the process already")
            return known
        probe = stack.enter_context(attached_probe(self._pid))
        self._notes = (probe.note(),)
        say(probe.note())
        if not probe.arrived:
            say("the probe will start as soon as the main thread runs Python code")
        return probe.directory


def _name(number: signal.Signals) -> str:
    return "Ctrl-C" if number is signal.SIGINT else number.name


def follow(pid: int, options: RecordingOptions) -> int:
    """Watch process `pid`, record and judge it; the exit code. Raises CannotWatch."""
    files = recording_files(options, command_line(pid), pid, say)
    try:
        with Mailbox(ENDING_SIGNALS) as mailbox:
            trackers = DestinationProcesses(
                options.destinations, options.run_variables, is_quiet=options.page.quiet
            )
            recorded = record(RunningProcess(pid, options), options, files, mailbox, trackers)
    except MemdiagError:  # there was nothing to record
        files.discard()
        raise
    decided = before_findings(stopped_at=recorded.stopped_at)
    try:
        code = conclude(
            files,
            options,
            recorded.ending,
            decided=decided,
            failure=recorded.failure,
            report_to=partial(report_to, trackers),
        )
    finally:
        trackers.finish()
    files.close()
    return code
