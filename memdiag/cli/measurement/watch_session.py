"""What `memdiag watch` does, from the first look at the process to the exit code."""

from __future__ import annotations

import signal
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from memdiag.capture.launch.signals import Letter, Mailbox
from memdiag.capture.probelink.channel import find_channel, find_ring, owners_of
from memdiag.capture.process.attach import attach, command_line, environment, this_table
from memdiag.capture.process.tree import Process
from memdiag.cli.measurement.record import record
from memdiag.cli.measurement.subject import Access, Running, Subject, tag_sources
from memdiag.cli.options.recording_options import RecordingOptions, recording_files
from memdiag.cli.output.conclude import conclude
from memdiag.cli.output.messages import say
from memdiag.errors import MemdiagError
from memdiag.values.measurements import Ending

if TYPE_CHECKING:
    from memdiag.cli.measurement.loop import Measurement

_ENDING_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class RunningProcess(Subject):
    """A process that memdiag did not start: measured, and not touched without --attach."""

    def __init__(self, pid: int, options: RecordingOptions) -> None:
        self._pid = pid
        self._options = options
        self._ended_by = ""
        self._notes: tuple[str, ...] = ()

    def prepare(self, stack: ExitStack, *, is_shown: bool) -> Access:
        """Raises CannotWatch."""
        _, self._log = tag_sources(self._options.tags, stack, from_tail=True)
        self._table = this_table()
        self._process: Process = attach(self._pid, self._table)
        directory = find_channel(self._pid)
        if self._options.attach:
            directory = self._inject(directory, stack)
        if is_shown:
            say(f"watching process {self._pid}; press Ctrl-C to stop watching and see the report")
        return Access(
            command=command_line(self._pid),
            environ=environment(self._pid),
            table=self._table,
            directory=directory,
            owners=owners_of(self._pid),
            log=self._log,
            is_ours=False,
        )

    def start(self) -> tuple[int, Running]:
        """The process runs already."""
        return self._pid, self

    @property
    def ending(self) -> Ending:
        """Why the watch ended, without a reason if the process did: only its parent learns how."""
        return Ending(why=self._ended_by)

    def handle(self, letters: Sequence[Letter], pids: Collection[int]) -> Sequence[str]:
        """Any signal that asks memdiag to end ends the watch."""
        for letter in letters:
            if letter.number in _ENDING_SIGNALS and not self._ended_by:
                self._ended_by = f"memdiag stopped watching ({letter.number.name})"
        return ()

    def over(self) -> bool:
        """Return True if the process has ended, or memdiag was asked to stop."""
        return bool(self._ended_by) or self._table.resident_bytes(self._process.id) is None

    def pause_wanted(self) -> bool:
        """Never: it has another terminal."""
        return False

    def pause(self) -> None:
        """Never called."""

    def end(self, why: str, pids: Collection[int]) -> None:
        """Stop watching; the process continues."""
        self._ended_by = why

    def finish(self) -> None:
        """Read the last lines of the log."""
        if self._log is not None:
            self._log.finish()

    def last_notes(self, measurement: Measurement) -> tuple[str, ...]:
        """How the probe was injected."""
        return self._notes

    def _inject(self, known: Path | None, stack: ExitStack) -> Path:
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


def follow(pid: int, options: RecordingOptions) -> int:
    """Watch process `pid`, record and judge it; the exit code. Raises CannotWatch."""
    files = recording_files(options, say)
    try:
        with Mailbox(_ENDING_SIGNALS) as mailbox:
            recorded = record(RunningProcess(pid, options), options, files, mailbox)
    except MemdiagError:  # there was nothing to record
        files.discard()
        raise
    code = conclude(files, options, recorded.ending, failure=recorded.failure)
    files.close()
    return code
