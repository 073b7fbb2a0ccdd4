"""What `memdiag run` does, from the first blocked signal to the exit code."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memdiag.capture.launch.output_tee import Outlets
from memdiag.capture.launch.signals import Mailbox, Witness
from memdiag.capture.launch.target import Launched, Target, adopt_orphans, start
from memdiag.capture.logtags.tagger import LogTags
from memdiag.capture.probelink import channel
from memdiag.capture.process.attach import this_table
from memdiag.capture.process.labels import why_not_measured
from memdiag.cli.measurement.destination_process import DestinationProcesses
from memdiag.cli.measurement.judge_process import apart
from memdiag.cli.measurement.record import Recorded, record
from memdiag.cli.measurement.subject import Access, Running, Subject, tag_sources
from memdiag.cli.measurement.tracker_feed import report_to
from memdiag.cli.options.exit_codes import Decider, before_findings
from memdiag.cli.options.recording_options import Explain, RecordingOptions, recording_files
from memdiag.cli.output.conclude import conclude
from memdiag.cli.output.messages import STDERR, in_words, say
from memdiag.errors import CannotMeasure, Exit, MemdiagError
from memdiag.probe.ring_format import (
    CENSUS_VARIABLE,
    EXPLAIN_VARIABLE,
    INTERVENE_VARIABLE,
    SNAPSHOT_VARIABLE,
)
from memdiag.report.formats.status_line import SETTLE
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.cli.measurement.loop import Measurement
    from memdiag.recording.native.atomic_file import RecordingFiles

# Helpers of a program that has just ended need a moment to end as well. Heuristic.
_SETTLE_S = 0.3
# Between two looks at a command that is not measured. Its end wakes memdiag anyway.
_LOOK_S = 1.0
# CPU time for judging a recording, without reading it: a hundred times what it takes. Heuristic.
_JUDGED_WITHIN_S = 30.0

_NO_SNAPSHOT = (
    "there is no snapshot of torch's GPU memory: torch used no GPU, or failed to write the file"
)


def launch(command: Sequence[str], options: RecordingOptions) -> int:
    """Run `command`, record and judge it; the exit code.

    Raises CannotStart, and UsageError or OutputExists if nothing can be recorded: then nothing was
    started. Once it was, its status counts whatever happens to memdiag.
    """
    files = recording_files(options, command, os.getpid(), say)
    if (why := why_not_measured(Path(command[0]).name)) is not None:
        say(f"{why.reason}, and whose memory is not measured: {why.remedy}")
    with Mailbox() as mailbox:  # holds signals back until COMMAND has ended
        subject = StartedCommand(command, options, mailbox, files)
        try:
            trackers = DestinationProcesses(
                options.destinations, options.run_variables, is_quiet=options.page.quiet
            )
            recorded = _recorded(subject, options, files, mailbox, trackers)
        except MemdiagError:
            files.discard()
            raise
    try:
        code = _judged(subject.launched, options, files, recorded, trackers)
    finally:
        trackers.finish()
    if subject.launched.ended_by_key:
        _die_by_interrupt()
    return code


class StartedCommand(Subject):
    """COMMAND, from before its start to its end. launched: it, once `is_started`."""

    launched: Launched

    def __init__(
        self,
        command: Sequence[str],
        options: RecordingOptions,
        mailbox: Mailbox,
        files: RecordingFiles,
    ) -> None:
        self._command = command
        self._files = files
        self._old_snapshots = files.snapshots() if options.snapshot else []
        self._options = options
        self._mailbox = mailbox
        self._witness: Witness | None = None
        self._outlets: Outlets | None = None
        self._log: LogTags | None = None
        self._directory: Path | None = None
        self._environ: Mapping[str, str] = os.environ
        self._survivors: frozenset[int] = frozenset()
        self.is_started = False

    def prepare(self, stack: ExitStack, *, is_shown: bool, is_live: bool) -> Access:
        """The witness is forked first: it must not inherit anything."""
        self._witness = _witness(self._mailbox, is_shown, stack)
        self._outlets, self._log = tag_sources(self._options.tags, stack, is_live=is_live)
        try:
            self._directory = channel.create()
            self._environ = channel.prepare(os.environ, self._directory)
            asked = self._asked_of_probe()
            known = {name: v for name, v in self._environ.items() if name not in asked}
            self._environ = known | {name: value for name, value in asked.items() if value}
        except CannotMeasure as error:
            say(f"{error.message}; steps, phases and tensors will not be recorded")
        stack.callback(self._remove_channel)
        helpers = (self._witness, self._log)
        own = {one.pid for one in helpers if one is not None}
        return Access(
            command=self._command,
            environ=self._environ,
            table=this_table(),
            directory=self._directory,
            log=self._log,
            outlets=self._outlets,
            adopter=os.getpid() if adopt_orphans() else None,
            strangers=frozenset(own | (self._outlets.pids if self._outlets is not None else set())),
            is_ours=True,
        )

    def _asked_of_probe(self) -> dict[str, str]:
        """Variables for the probe; "": none, as the default is what is asked for."""
        options = self._options
        return {
            EXPLAIN_VARIABLE: "" if options.explain is Explain.AUTO else options.explain.value,
            CENSUS_VARIABLE: "1" if options.census else "",
            INTERVENE_VARIABLE: "1" if options.intervene else "",
            SNAPSHOT_VARIABLE: self._files.place() if options.snapshot else "",
        }

    def start(self) -> tuple[int, Running]:
        """Raises CannotStart."""
        streams = self._outlets.streams if self._outlets is not None else {}
        target = self._start(self._environ, streams)
        self.launched = Launched(target, self._witness, self._outlets)
        self.is_started = True
        if self._outlets is not None:
            self._outlets.started()
        return target.pid, self.launched

    def start_alone(self) -> None:
        """Start it although it cannot be measured. Raises CannotStart."""
        self.launched = Launched(self._start(os.environ, {}), None)
        self.is_started = True

    def _start(self, environ: Mapping[str, str], streams: Mapping[int, int]) -> Target:
        mask = self._mailbox.inherited_mask
        return start(self._command, environ=environ, signal_mask=mask, streams=streams)

    def finish(self) -> None:
        """Pass on its last output, unless Ctrl-C cuts that short, and look for tags in it."""
        if self._outlets is not None:
            self._outlets.drain(lambda: not _interrupted(self._mailbox))
        if self._log is not None:
            self._log.finish()

    def last_notes(self, measurement: Measurement) -> tuple[str, ...]:
        """Waits a moment for the processes that outlive the command, and names them."""
        until_s = time.monotonic() + _SETTLE_S
        while measurement.pids and time.monotonic() < until_s:
            time.sleep(_SETTLE_S / 10)
            measurement.look()
        self._survivors = measurement.pids
        notes = []
        if self._options.snapshot:
            found = [one for one in self._files.snapshots() if one not in self._old_snapshots]
            notes += [f"torch's snapshot of GPU memory is in {one}" for one in found] or [
                _NO_SNAPSHOT
            ]
        if self._survivors and not self.launched.left_alone:
            notes.append(_about_survivors(sorted(self._survivors)))
        for note in notes:
            say(printable(note))
        return tuple(notes)

    def _remove_channel(self) -> None:
        """It stays while somebody may still write into it."""
        is_over = not self.is_started or self.launched.over()
        if self._directory is not None and is_over and not self._survivors:
            channel.remove(self._directory)
        channel.remove_stale()


def _recorded(
    subject: StartedCommand,
    options: RecordingOptions,
    files: RecordingFiles,
    mailbox: Mailbox,
    trackers: DestinationProcesses,
) -> Recorded:
    """Start and record it. A failure in here keeps it neither from starting nor from ending.

    Raises CannotStart.
    """
    failure = ""
    try:
        return record(subject, options, files, mailbox, trackers)
    except Exception as error:
        if isinstance(error, MemdiagError) and not subject.is_started:
            raise
        failure = in_words(error)
    if not subject.is_started:
        subject.start_alone()
    launched = subject.launched
    while not launched.over():
        launched.handle(mailbox.wait(_LOOK_S), ())
        if launched.pause_wanted():
            launched.pause()
    return Recorded(ending=launched.ending, failure=failure)


def _judged(
    launched: Launched,
    options: RecordingOptions,
    files: RecordingFiles,
    recorded: Recorded,
    trackers: DestinationProcesses,
) -> int:
    """Judge the recording; the exit code. A failure of memdiag does not change COMMAND's status,
    unless a verdict was asked for.
    """
    gate = options.gate
    decided = before_findings(
        decider=gate.decider,
        command=recorded.ending,
        stopped_by_us=bool(launched.why_ended),
        interrupted=launched.interrupts > 0,
        stopped_at=recorded.stopped_at,
    )
    judge = partial(
        conclude,
        files,
        options,
        recorded.ending,
        decided=decided,
        failure=recorded.failure,
        report_to=partial(report_to, trackers),
    )
    code = None
    try:
        code = apart(judge, patience_s=_patience_s(files))
    except KeyboardInterrupt:
        decided = decided or Exit.INTERRUPTED
    except Exception as error:
        say(in_words(error))
    if code is None:
        say(f"the recording could not be judged{_probable_reason()}")
        say(f"run `memdiag analyze {printable(str(files.written))}` to judge it")
        asked = gate.decider is Decider.VERDICT or gate.budgets
        code = decided or (Exit.CANNOT_MEASURE if asked else Exit.NO_LEAK)
    files.close()
    return code


def _patience_s(files: RecordingFiles) -> float:
    """How much CPU time judging may take. Measured (`benchmarks/speed.py`): 1 s for 10 MB."""
    return _JUDGED_WITHIN_S + os.fstat(files.fd).st_size / 1e6


def _probable_reason() -> str:
    """A limit on the memory of this process, which is probably the reason; "" without one."""
    for name, what in (("RLIMIT_AS", "ulimit -v"), ("RLIMIT_DATA", "ulimit -d")):
        most_bytes, _ = resource.getrlimit(getattr(resource, name))
        if most_bytes != resource.RLIM_INFINITY:
            return f" within the memory limit of {what} ({most_bytes >> 20} MiB)"
    return ""


def _witness(mailbox: Mailbox, is_shown: bool, stack: ExitStack) -> Witness | None:
    try:
        if is_shown:
            witness = Witness(mailbox.signals, terminal=STDERR, last_words=SETTLE)
        else:
            witness = Witness(mailbox.signals)
    except OSError:
        return None  # no more processes for this user: continue without
    stack.callback(witness.dismiss)
    return witness


def _about_survivors(pids: Sequence[int]) -> str:
    names = ", ".join(map(str, pids[:5])) + (", ..." if len(pids) > 5 else "")
    still = "child processes are" if len(pids) > 1 else "child process is"
    return (
        f"the command has ended; {len(pids)} {still} still running and no longer watched "
        f"(pid {names}): memdiag watch --pid {pids[0]} continues"
    )


def _interrupted(mailbox: Mailbox) -> bool:
    return any(letter.number == signal.SIGINT for letter in mailbox.wait(0.0))


def _die_by_interrupt() -> None:
    """End as the command did. A shell that runs a script or a loop then stops it, as it would
    have without memdiag, and shows 130. Only for Ctrl-C at a keyboard.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
