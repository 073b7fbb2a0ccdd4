"""What `memdiag run` does, from the first blocked signal to the exit code."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memdiag.capture.launch.signals import Mailbox, Witness
from memdiag.capture.launch.target import Launched, Target, adopt_orphans, start
from memdiag.capture.probelink import channel
from memdiag.capture.process.attach import this_table
from memdiag.cli.measurement.instruments import Apparatus
from memdiag.cli.measurement.judge_process import apart
from memdiag.cli.measurement.live_verdict import FinalRules, live_verdict
from memdiag.cli.measurement.log_tagging import Listening
from memdiag.cli.measurement.loop import Measurement, in_words, measure
from memdiag.cli.measurement.recorder import recorder
from memdiag.cli.measurement.threshold_alarms import Alarms
from memdiag.cli.options.exit_codes import Decider, before_findings
from memdiag.cli.options.recording_options import Options, recording_files
from memdiag.cli.output.conclude import STDERR, conclude, say
from memdiag.errors import CannotMeasure, Exit, MemdiagError
from memdiag.report.formats.status_line import SETTLE, LastRow, wanted
from memdiag.values.measurements import Ending
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.recording.native.atomic_file import RecordingFiles

# Helpers of a program that has just ended need a moment to end as well. Chosen.
_SETTLE_S = 0.3
# Between two looks at a command that is not measured. Its end wakes us anyway.
_LOOK_S = 1.0
# Judging a recording, apart from reading it: a hundred times what it takes. Heuristic.
_JUDGED_WITHIN_S = 30.0


def launch(command: Sequence[str], options: Options) -> int:
    """Run `command`, record and judge it; the exit code.

    Raises CannotStart, and UsageError or OutputExists where nothing can be recorded: then nothing
    was started. Once it was, its status stands whatever becomes of us.
    """
    from memdiag.recording.native.writer import default_path

    now = datetime.now(timezone.utc)
    files = recording_files(options, lambda: default_path(os.getpid(), now), say)
    with Mailbox() as mailbox:
        run = _Run(command, options, files, mailbox)
        try:
            run.to_its_end()
        except MemdiagError:
            files.discard()
            raise
    code = run.conclude()
    if run.ended_by_key:
        _die_by_interrupt()
    return code


class _Run:
    """One COMMAND, from its start to the exit code."""

    def __init__(
        self, command: Sequence[str], options: Options, files: RecordingFiles, mailbox: Mailbox
    ) -> None:
        """mailbox: holds signals back until COMMAND has ended."""
        self._command = command
        self._options = options
        self._files = files
        self._mailbox = mailbox
        self._launched: Launched | None = None
        self._ending: Ending | None = None
        self._failure = ""

    def to_its_end(self) -> None:
        """Start and measure it. What fails in here keeps it neither from starting nor from ending.

        Raises CannotStart.
        """
        try:
            with ExitStack() as stack:
                self._measure(stack)
        except Exception as error:
            if isinstance(error, MemdiagError) and self._launched is None:
                raise
            self._failure = self._failure or in_words(error)
        launched = self._launched or Launched(self._start(dict(os.environ), {}), None)
        self._launched = launched
        while not launched.over():
            launched.handle(self._mailbox.wait(_LOOK_S), ())
            if launched.pause_wanted():
                launched.pause()
        self._ending = self._ending or launched.ending

    @property
    def ended_by_key(self) -> bool:
        """Ctrl-C at the keyboard ended it, and it let itself be killed by that."""
        return self._launched is not None and self._launched.ended_by_key

    def conclude(self) -> int:
        """Judge the recording; the exit code. A failure of ours does not change COMMAND's status,
        unless a verdict was asked for.
        """
        launched, gate, files = self._launched, self._options.gate, self._files
        decided = before_findings(
            decider=gate.decider,
            command=self._ending,
            stopped_by_us=launched is not None and bool(launched.why_ended),
            interrupted=launched is not None and launched.interrupts > 0,
        )
        judge = partial(
            conclude,
            files,
            self._options,
            ending=self._ending,
            decided=decided,
            failure=self._failure,
        )
        try:
            code = apart(judge, patience_s=_patience_s(files))
        except KeyboardInterrupt:
            decided, code = decided or Exit.INTERRUPTED, None
        except Exception as error:
            code = None
            say(in_words(error))
        if code is None:
            say(f"the recording could not be judged{_for_want_of_memory()}")
            say(f"`memdiag analyze {printable(str(files.written))}` judges it")
            asked = gate.decider is Decider.VERDICT or gate.budgets
            code = decided or (Exit.CANNOT_MEASURE if asked else Exit.NO_LEAK)
        files.close()
        return code

    def _measure(self, stack: ExitStack) -> None:
        """Start it, follow it to its end, and close the recording.

        The order matters: the witness is forked before there is any thread.
        """
        options, mailbox = self._options, self._mailbox
        is_shown = not options.quiet and wanted(STDERR, os.environ)
        witness = _witness(mailbox, is_shown, stack)
        listening = stack.enter_context(Listening(options.tags))
        directory, environ = _channel()
        live = live_verdict(options) if is_shown or options.stop_on_leak else None
        apparatus = Apparatus(
            options, table=this_table(), environ=environ, directory=directory, log=listening.log
        )
        stack.enter_context(apparatus)
        adopter = os.getpid() if adopt_orphans() else None
        row = LastRow(STDERR, is_wanted=partial(wanted, STDERR, os.environ))
        stack.callback(row.release)
        if is_shown:
            row.reserve()
        about = apparatus.about(self._command)
        began_s = time.monotonic()
        target = self._start(environ, listening.streams)
        self._launched = launched = Launched(target, witness, listening.outlets)
        listening.started()
        strangers = listening.pids.union([witness.pid] if witness is not None else ())
        measurement = Measurement(
            session=apparatus.session(
                target.pid,
                began_s=began_s,
                adopter=adopter,
                strangers=strangers,
                whole_channel=True,
            ),
            open_writer=recorder(self._files, {**about, "pid": target.pid}, options),
            row=row,
            interval_s=options.interval_s,
            began_s=began_s,
            alarms=Alarms(options.gate.thresholds, apparatus.limits),
            live=live,
            final_rules=FinalRules(self._files),
        )
        finish = partial(listening.finish, mailbox)
        measure(launched, measurement, mailbox, options, say=say, finish=finish)
        self._ending = _close(apparatus, measurement, launched, directory)
        self._failure = measurement.failure
        channel.remove_stale()

    def _start(self, environ: Mapping[str, str], streams: Mapping[int, int]) -> Target:
        mask = self._mailbox.inherited_mask
        return start(self._command, environ=environ, signal_mask=mask, streams=streams)


def _patience_s(files: RecordingFiles) -> float:
    """How long judging may take. Measured (`benchmarks/speed.py`): 1 s for 10 MB."""
    return _JUDGED_WITHIN_S + os.fstat(files.fd).st_size / 1e6


def _for_want_of_memory() -> str:
    """What is probably the reason, where this process may not have as much memory as there is."""
    for name, what in (("RLIMIT_AS", "ulimit -v"), ("RLIMIT_DATA", "ulimit -d")):
        most_bytes, _ = resource.getrlimit(getattr(resource, name))
        if most_bytes != resource.RLIM_INFINITY:
            return f" within the memory that {what} leaves it ({most_bytes >> 20} MiB)"
    return ""


def _close(
    apparatus: Apparatus, measurement: Measurement, launched: Launched, directory: Path | None
) -> Ending | None:
    """Complete the recording; the channel stays while somebody may still write into it."""
    lived_on = _survivors(measurement)
    ending = apparatus.explained(launched.ending, last=measurement.last_readings)
    measurement.close(
        ending,
        missing=apparatus.missing(),
        limits=apparatus.limits(),
        notes=(*apparatus.notes(), *_about_survivors(lived_on, launched)),
        processes=apparatus.processes(),
    )
    if directory is not None and not lived_on:
        channel.remove(directory)
    return ending


def _witness(mailbox: Mailbox, is_shown: bool, stack: ExitStack) -> Witness | None:
    try:
        if is_shown:
            witness = Witness(mailbox.signals, terminal=STDERR, last_words=SETTLE)
        else:
            witness = Witness(mailbox.signals)
    except OSError:
        return None  # no more processes for this user: go on without
    stack.callback(witness.dismiss)
    return witness


def _channel() -> tuple[Path | None, Mapping[str, str]]:
    try:
        directory = channel.create()
    except CannotMeasure as error:
        say(f"{error.message}; steps, phases and tensors will not be recorded")
        return None, dict(os.environ)
    return directory, channel.prepare(os.environ, directory)


def _survivors(measurement: Measurement) -> frozenset[int]:
    """Processes of the tree that outlive the command."""
    until_s = time.monotonic() + _SETTLE_S
    while measurement.pids and time.monotonic() < until_s:
        time.sleep(_SETTLE_S / 10)
        measurement.look()
    return measurement.pids


def _about_survivors(pids: frozenset[int], launched: Launched) -> tuple[str, ...]:
    if not pids or launched.left_alone:
        return ()
    names = ", ".join(map(str, sorted(pids)[:5])) + (", ..." if len(pids) > 5 else "")
    many = "processes it started live" if len(pids) > 1 else "process it started lives"
    note = (
        f"the command has ended, {len(pids)} {many} on unwatched (pid {names}):"
        f" memdiag watch --pid {min(pids)} follows it"
    )
    say(note)
    return (note,)


def _die_by_interrupt() -> None:
    """End as the command did. A shell that runs a script or a loop then stops it, as it would
    have without memdiag; it shows 130 for this. Only for Ctrl-C at a keyboard.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
