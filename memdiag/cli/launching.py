"""What `memdiag run` does, from the first blocked signal to the exit code."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from memdiag.capture import channel
from memdiag.capture.attach import this_table
from memdiag.capture.signals import Mailbox, Witness
from memdiag.capture.target import Launched, Target, adopt_orphans, start
from memdiag.cli.alarms import Alarms
from memdiag.cli.apparatus import Apparatus
from memdiag.cli.conclude import STDERR, conclude, say
from memdiag.cli.leaning import leaning
from memdiag.cli.listening import Listening
from memdiag.cli.measure import Measurement, measure
from memdiag.cli.options import Options, recording_path
from memdiag.cli.recorder import recorder
from memdiag.errors import CannotMeasure
from memdiag.model import Ending
from memdiag.report.live import SETTLE, LastRow, wanted

# Helpers of a program that has just ended need a moment to end as well. Chosen.
_SETTLE_S = 0.3


def launch(command: Sequence[str], options: Options) -> int:
    """Run `command`, record and judge it; the exit code. Raises CannotStart."""
    from memdiag.recording.writing import default_path

    now = datetime.now(timezone.utc)
    path = recording_path(options, lambda: default_path(os.getpid(), now), say)
    with ExitStack() as stack:
        launched, ending, failure = _record(command, options, path, stack)
    code = conclude(
        path,
        options,
        ending=ending,
        command=command,
        stopped_by_us=bool(launched.why_ended),
        interrupted=launched.interrupts > 0,
        failure=failure,
    )
    if launched.ended_by_key:
        _die_by_interrupt()
    return code


def _record(
    command: Sequence[str], options: Options, path: Path, stack: ExitStack
) -> tuple[Launched, Ending | None, str]:
    """Start, follow to the end, and close the recording; why it failed, "" where it did not.

    The order matters: signals are held back before anything can be started, and the witness is
    forked before there is any thread.
    """
    mailbox = stack.enter_context(Mailbox())
    is_shown = not options.quiet and wanted(STDERR, os.environ)
    witness = _witness(mailbox, is_shown, stack)
    listening = stack.enter_context(Listening(options.tags))
    directory, environ = _channel()
    live = leaning(options) if is_shown or options.stop_on_leak else None
    apparatus = Apparatus(
        options, table=this_table(), environ=environ, directory=directory, log=listening.log
    )
    stack.enter_context(apparatus)
    adopter = os.getpid() if adopt_orphans() else None
    row = LastRow(STDERR, is_wanted=partial(wanted, STDERR, os.environ))
    stack.callback(row.release)
    if is_shown:
        row.reserve()
    about = apparatus.about(command)
    began_s = time.monotonic()
    target = _started(command, environ, mailbox, listening)
    launched = Launched(target, witness, listening.outlets)
    measurement = Measurement(
        session=apparatus.session(
            target.pid,
            began_s=began_s,
            adopter=adopter,
            strangers=listening.pids.union([witness.pid] if witness is not None else ()),
            whole_channel=True,
        ),
        open_writer=recorder(path, {**about, "pid": target.pid}, options),
        row=row,
        interval_s=options.interval_s,
        began_s=began_s,
        alarms=Alarms(options.gate.thresholds, apparatus.limits),
        live=live,
    )
    finish = partial(listening.finish, mailbox)
    measure(launched, measurement, mailbox, options, say=say, finish=finish)
    ending = _close(apparatus, measurement, launched, directory)
    return launched, ending, measurement.failure


def _started(
    command: Sequence[str], environ: Mapping[str, str], mailbox: Mailbox, listening: Listening
) -> Target:
    mask, streams = mailbox.inherited_mask, listening.streams
    target = start(command, environ=environ, signal_mask=mask, streams=streams)
    listening.started()
    return target


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
    channel.remove_stale()
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
