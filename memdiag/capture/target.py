"""The command under watch: started untouched, supervised until it ends.

Untouched means: `posix_spawn` in memdiag's own process group, with the signal mask that memdiag
was started with, default action for the signals that Python itself had set to be ignored, every
descriptor that memdiag inherited (a shell's `<(...)` among them) and none of memdiag's own.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import signal
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from memdiag.capture.signals import PASSED_ON, TERMINAL_STOPS, Letter, Witness
from memdiag.errors import CannotStart
from memdiag.model import Ending
from memdiag.printable import printable

# Python ignores these when it starts; a command must find them as they were.
_IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}
# prctl(2): orphans among our descendants become our children instead of init's.
_PR_SET_CHILD_SUBREAPER = 36


class Target:
    """The started command. `ending` is None while it runs, `stopped_by` while it is not stopped."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ending: Ending | None = None
        self.stopped_by: signal.Signals | None = None

    def look(self) -> None:
        """Collect what became of the command and of orphans that came to us. Never waits."""
        flags = os.WNOHANG | os.WUNTRACED | os.WCONTINUED
        while True:
            try:
                pid, status = os.waitpid(-1, flags)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid == self.pid:
                self._note(status)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the command, if it still runs (its pid is ours until collected)."""
        if self.ending is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)

    def _note(self, status: int) -> None:
        if os.WIFSTOPPED(status):
            self.stopped_by = signal.Signals(os.WSTOPSIG(status))
        elif os.WIFCONTINUED(status):
            self.stopped_by = None
        elif os.WIFSIGNALED(status):
            self.ending = Ending(signal=os.WTERMSIG(status))
        else:
            self.ending = Ending(code=os.WEXITSTATUS(status))


def start(
    command: Sequence[str], *, environ: Mapping[str, str], signal_mask: Collection[int]
) -> Target:
    """Start `command` (looked up on PATH, as a shell does). Raises CannotStart."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # or its exit status would be lost
    try:
        return Target(_spawn(command, environ, signal_mask))
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise _cannot_start(command[0], error) from error
    script = shutil.which(command[0]) or command[0]
    try:  # a script without "#!": every shell, and execvp(3), hands it to sh
        return Target(_spawn(["/bin/sh", script, *command[1:]], environ, signal_mask))
    except OSError as error:
        raise _cannot_start(command[0], error) from error


def adopt_orphans() -> bool:
    """Have orphaned descendants handed to this process, so that a daemon stays in the tree.

    True where the system can (Linux). Not inherited by children; ends with memdiag, after which
    orphans go to init as ever.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _spawn(command: Sequence[str], environ: Mapping[str, str], signal_mask: Collection[int]) -> int:
    return os.posix_spawnp(
        command[0],
        list(command),
        dict(environ),
        setsigmask=signal_mask,
        setsigdef=_IGNORED_BY_PYTHON,
    )


def _cannot_start(name: str, error: OSError) -> CannotStart:
    shown = printable(name)
    there = shutil.which(name, mode=os.F_OK) is not None
    if isinstance(error, FileNotFoundError) and not there:
        return CannotStart(
            f"there is no command {shown!r}",
            remedy="check the spelling, PATH, or give its full path",
        )
    if isinstance(error, FileNotFoundError):
        return CannotStart(
            f"{shown} is there, but the interpreter in its first line (#!) is not",
            remedy=f"run it by its interpreter: memdiag run -- python {shown}",
            found=True,
        )
    if isinstance(error, PermissionError) and Path(name).is_dir():
        return CannotStart(f"{shown} is a directory", remedy="name a program", found=True)
    if isinstance(error, PermissionError):
        return CannotStart(
            f"{shown} is not executable",
            remedy=f"run it by its interpreter (memdiag run -- python {shown}) or chmod +x it",
            found=True,
        )
    return CannotStart(
        f"{shown} could not be started: {error.strerror}", remedy="try it alone", found=True
    )


class Supervisor:
    """Passes on what was meant for the command, and counts what was meant for memdiag.

    interrupts: how often the person pressed Ctrl-C (or somebody sent SIGINT).
    """

    def __init__(self, target: Target, witness: Witness | None) -> None:
        self._target = target
        self._witness = witness
        self._stops: set[signal.Signals] = set()
        self.interrupts = 0

    def handle(self, letters: Iterable[Letter], tree: Collection[int] = ()) -> None:
        """Act on the signals that arrived; `tree`: pids of the target's processes."""
        letters = [letter for letter in letters if letter.number != signal.SIGCHLD]
        if letters:
            self._deliver(letters, tree)
        self._target.look()

    def stop_wanted(self) -> signal.Signals | None:
        """The signal by which the command was stopped through its terminal, once for each stop.

        memdiag has to stop as well then, or the shell would never give its prompt. A command
        stopped otherwise (`kill -STOP PID`) is left to whoever did that.
        """
        stopped_by = self._target.stopped_by
        if stopped_by is None or stopped_by not in self._stops:
            return None
        self._stops.clear()
        return stopped_by

    def _deliver(self, letters: Sequence[Letter], tree: Collection[int]) -> None:
        seen = self._witness.seen() if self._witness is not None else None
        for letter in letters:
            self.interrupts += letter.number == signal.SIGINT and letter.sender not in tree
            if letter.number == signal.SIGCONT:
                self._stops.clear()
            if letter.number in TERMINAL_STOPS:
                self._stops.add(letter.number)
            if letter.number in PASSED_ON and not _target_has_it(letter, seen, tree):
                self._target.send(letter.number)


def _target_has_it(letter: Letter, seen: frozenset[int] | None, tree: Collection[int]) -> bool:
    if letter.sender in tree:
        return True  # the target's own doing: it must not come back to it
    if seen is None:
        return letter.sender == 0  # without a witness: the kernel signals whole groups
    return letter.number in seen


def stop_self(number: signal.Signals) -> None:
    """Stop this process like `number` would have; returns when it is continued."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
