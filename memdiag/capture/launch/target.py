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
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from memdiag.capture.launch.output_tee import Outlets
from memdiag.capture.launch.signals import PASSED_ON, TERMINAL_STOPS, Letter, Witness
from memdiag.errors import CannotStart
from memdiag.values.measurements import Ending
from memdiag.values.sanitize import printable

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
    command: Sequence[str],
    *,
    environ: Mapping[str, str],
    signal_mask: Collection[int],
    streams: Mapping[int, int] | None = None,
) -> Target:
    """Start `command` (looked up on PATH, as a shell does). Raises CannotStart.

    streams: descriptors of the command's -> ours that it gets there; all others as we have them.
    """
    streams = streams or {}
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # or its exit status would be lost
    try:
        return Target(_spawn(command, environ, signal_mask, streams))
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise _cannot_start(command[0], error) from error
    script = shutil.which(command[0]) or command[0]
    try:  # a script without "#!": every shell, and execvp(3), hands it to sh
        return Target(_spawn(["/bin/sh", script, *command[1:]], environ, signal_mask, streams))
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


def _spawn(
    command: Sequence[str],
    environ: Mapping[str, str],
    signal_mask: Collection[int],
    streams: Mapping[int, int],
) -> int:
    return os.posix_spawnp(
        command[0],
        list(command),
        dict(environ),
        file_actions=[(os.POSIX_SPAWN_DUP2, ours, theirs) for theirs, ours in streams.items()],
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
    keyed: one of them came from the terminal's keyboard.
    """

    def __init__(self, target: Target, witness: Witness | None) -> None:
        self._target = target
        self._witness = witness
        self._stops: set[signal.Signals] = set()
        self.interrupts = 0
        self.keyed = False

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
            if letter.number == signal.SIGINT and letter.sender not in tree:
                self.interrupts += 1
                self.keyed = self.keyed or letter.sender == 0
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


class Launched:
    """A started command as the thing to be measured, from its start to its orderly end.

    The third Ctrl-C lets the person out even when the command ignores it: memdiag then leaves it
    running. Ended by memdiag, all processes of the tree get SIGTERM, and SIGKILL after a grace.
    """

    INTERRUPTS_TO_LEAVE = 3
    GRACE_S = 10.0  # chosen: as container runtimes do

    def __init__(
        self, target: Target, witness: Witness | None, outlets: Outlets | None = None
    ) -> None:
        """outlets: what its output goes through, where that is read along with."""
        self._target = target
        self._outlets = outlets
        self._supervisor = Supervisor(target, witness)
        self._stop: signal.Signals | None = None
        self._kill_at_s: float | None = None
        self._killed = False
        self._left: Collection[int] = ()
        self.why_ended = ""

    @property
    def interrupts(self) -> int:
        """How often the person pressed Ctrl-C."""
        return self._supervisor.interrupts

    @property
    def ended_by_key(self) -> bool:
        """Ctrl-C at the keyboard ended it, and it let itself be killed by that."""
        ending = self._target.ending
        return self._supervisor.keyed and ending is not None and ending.signal == signal.SIGINT

    @property
    def left_alone(self) -> bool:
        """The person had enough; the command still runs."""
        return self._target.ending is None and self.interrupts >= self.INTERRUPTS_TO_LEAVE

    @property
    def ending(self) -> Ending:
        """How it ended, as far as that is known."""
        ending = self._target.ending
        if ending is None:
            why = f"left running by memdiag after the third Ctrl-C (pid {self._target.pid})"
            return Ending(why=why)
        return replace(ending, why=self.why_ended)

    def handle(self, letters: Sequence[Letter], pids: Collection[int]) -> Sequence[str]:
        """Pass on signals, and look how the command is; what to tell the person."""
        before = self.interrupts
        self._supervisor.handle(letters, pids)
        self._follow_window(letters, pids)
        warned = before < self.INTERRUPTS_TO_LEAVE - 1 <= self.interrupts
        if self.left_alone:
            return (f"the command is left running (pid {self._target.pid})",)
        if not warned or self._target.ending is not None:
            return ()
        return ("the command has not ended yet; one more Ctrl-C leaves it running and reports",)

    def _follow_window(self, letters: Sequence[Letter], pids: Collection[int]) -> None:
        """The terminal that the command sees is ours: it changes a moment after the real one."""
        if self._outlets is None:
            return
        if any(letter.number == signal.SIGWINCH for letter in letters):
            self._outlets.follow_size()
        if self._outlets.resized() and self._target.ending is None:
            signal_all({*pids, self._target.pid}, signal.SIGWINCH)

    def over(self) -> bool:
        """The command has ended (and all of the tree, where memdiag ends it), or was left."""
        if self._target.ending is None:
            return self.left_alone
        return self._kill_at_s is None or self._killed or not self._left

    def pause_wanted(self) -> bool:
        """The command was stopped by its terminal."""
        self._stop = self._supervisor.stop_wanted()
        return self._stop is not None

    def pause(self) -> None:
        """Stop as the command was stopped; returns when continued."""
        if self._stop is not None:
            stop_self(self._stop)

    def end(self, why: str, pids: Collection[int]) -> None:
        """SIGTERM for the command and all of `pids`, later SIGKILL. Call it until `over`."""
        now_s = time.monotonic()
        if self._target.ending is None:
            pids = {*pids, self._target.pid}
        self._left = pids
        if self._kill_at_s is None:
            self.why_ended = why
            self._kill_at_s = now_s + self.GRACE_S
            signal_all(pids, signal.SIGTERM)
            signal_all(pids, signal.SIGCONT)  # a stopped one could not act on it
        elif now_s >= self._kill_at_s and not self._killed:
            self._killed = True
            signal_all(pids, signal.SIGKILL)


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each of `pids` that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def stop_self(number: signal.Signals) -> None:
    """Stop this process like `number` would have; returns when it is continued."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
