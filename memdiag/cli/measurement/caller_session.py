"""Records the process that has started this one: the other side of `memdiag.record()`.

It is `memdiag watch --attach` of the parent process, but for two differences. The caller executes
the script that loads the probe by itself, so that nothing is injected, and it ends the recording by
SIGTERM. Messages to the caller are lines of JSON on standard output.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from memdiag.capture.launch.signals import Letter, Mailbox
from memdiag.capture.probelink.channel import find_ring
from memdiag.capture.probelink.guest_probe import invited_probe
from memdiag.capture.process.attach import command_line
from memdiag.cli.measurement.record import record
from memdiag.cli.measurement.subject import Access
from memdiag.cli.measurement.watch_session import ENDING_SIGNALS, RunningProcess
from memdiag.cli.options.gate import GateOptions, settle
from memdiag.cli.options.page import PageOptions
from memdiag.cli.options.recording_options import (
    Explain,
    RecordingOptions,
    interval,
    recording_files,
)
from memdiag.cli.output.messages import in_words, say
from memdiag.errors import CannotMeasure, CannotWatch, MemdiagError, OutputExists, UsageError
from memdiag.recording.native.atomic_file import RecordingFiles
from memdiag.values.units import invalid

_OVER = "the recorded part of the program has ended"


def main(asked: dict[str, Any]) -> int:
    """Record as `asked`; the exit status.

    asked: `pid` of the caller, `interval_s`, `output` (a path or None) and `explain`.
    """
    sys.argv[1:] = []
    pid = int(asked["pid"])
    output = asked["output"]
    try:
        options = RecordingOptions(
            interval_s=interval(str(asked["interval_s"])),
            output=None if output is None else Path(output),
            explain=_explain(str(asked["explain"])),
            page=PageOptions(quiet=True),
            attach=True,
            gate=settle(GateOptions()),
        )
        files = recording_files(options, command_line(pid), pid, say)
    except MemdiagError as error:
        return _refused(error)
    caller = Caller(pid, options, files)
    try:
        with Mailbox(ENDING_SIGNALS) as mailbox:
            recorded = record(caller, options, files, mailbox)
    except MemdiagError as error:  # there was nothing to record
        files.discard()
        return _refused(error)
    files.close()
    _tell(failure=recorded.failure)
    return 0


class Caller(RunningProcess):
    """The process that has started this one."""

    def __init__(self, pid: int, options: RecordingOptions, files: RecordingFiles) -> None:
        super().__init__(pid, options)
        self._files = files
        self._has_begun = False

    def prepare(self, stack: ExitStack, *, is_shown: bool, is_live: bool) -> Access:
        """Raises CannotWatch if the caller is gone."""
        if os.getppid() != self._pid:
            raise CannotWatch(f"process {self._pid} has ended")
        return super().prepare(stack, is_shown=is_shown, is_live=is_live)

    def handle(self, letters: Sequence[Letter], pids: Collection[int]) -> Sequence[str]:
        """Any signal that asks memdiag to end ends the recording."""
        if any(letter.number in ENDING_SIGNALS for letter in letters):
            self.end(_OVER, pids)
        return ()

    def over(self) -> bool:
        """Return True if the caller has ended, or the part of it that is recorded."""
        if not self._has_begun:  # the first sample was taken
            self._has_begun = True
            _tell(recording=str(self._files.path))
        return super().over()

    def _inject(self, known: Path | None, stack: ExitStack) -> Path | None:
        """The channel of the caller, with the probe in it: its own, or one for this recording."""
        if known is not None and find_ring(known, self._pid) is not None:
            return known
        try:
            return stack.enter_context(invited_probe(self._pid, lambda path: _tell(execute=path)))
        except CannotMeasure as error:
            say(f"{in_words(error)}; steps, phases and tensors will not be recorded")
            return None


def _explain(word: str) -> Explain:
    try:
        return Explain(word)
    except ValueError as error:
        words = ", ".join(one.value for one in Explain)
        raise invalid(word, "explain", "unknown", f"choose from {words}") from error


def _refused(error: MemdiagError) -> int:
    is_usage = isinstance(error, (UsageError, OutputExists))
    _tell(error=in_words(error), remedy=error.remedy, is_usage=is_usage)
    return 1


def _tell(**message: object) -> None:
    with contextlib.suppress(OSError):  # the caller has ended
        print(json.dumps(message), flush=True)
