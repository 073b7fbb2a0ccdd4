"""Starts the command without changing its environment, and supervises it until it ends.

It is started by `posix_spawn` in memdiag's process group, with the signal mask that memdiag was
started with, the default action for signals that Python ignores, every descriptor that memdiag has
inherited (such as a shell's `<(...)`), and none of memdiag's own.
"""

from __future__ import annotations

import contextlib
import ctypes
import difflib
import errno
import os
import re
import shlex
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

# Python ignores these from its start; the command needs their default action.
_IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}
# prctl(2): orphaned descendants become children of this process instead of init.
_PR_SET_CHILD_SUBREAPER = 36
# How similar a word must be to a program's name to count as misspelled. Heuristic.
_MISSPELLED = 0.8


class Target:
    """The started command. `ending` is None while it runs, `stopped_by` while it is not stopped."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ending: Ending | None = None
        self.stopped_by: signal.Signals | None = None

    def look(self) -> None:
        """Collect the status of the command and of adopted orphans. Never waits."""
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

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to the command if it still runs (its pid is not reused before).

        Returns False if it has ended, or may not be sent.
        """
        return self.ending is None and signal_all([self.pid], number)

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
    """Start `command` (searched on PATH, as a shell does). Raises CannotStart.

    streams: descriptor in the command -> our descriptor for it; others are inherited.
    """
    if not command[0]:
        raise CannotStart(
            "the command is an empty word", remedy="check the variable that it comes from"
        )
    streams = streams or {}
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else its exit status would be lost
    try:
        return Target(_spawn(command, environ, signal_mask, streams))
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise _cannot_start(command, error) from error
    script = shutil.which(command[0]) or command[0]
    try:  # a script without "#!": shells and execvp(3) run it with sh
        return Target(_spawn(["/bin/sh", script, *command[1:]], environ, signal_mask, streams))
    except OSError as error:
        raise _cannot_start(command, error) from error


def adopt_orphans() -> bool:
    """Make this process the parent of orphaned descendants, so that daemons stay in the tree.

    Returns True if the system supports it (Linux). Not inherited by children. After memdiag's exit
    init adopts orphans again.
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


def _cannot_start(command: Sequence[str], error: OSError) -> CannotStart:
    name, shown = command[0], printable(command[0])
    there = shutil.which(name, mode=os.F_OK) is not None
    as_script = f"memdiag run -- python {_typed(command)}"
    if isinstance(error, FileNotFoundError) and not there:
        message, remedy = _not_found(command)
        return CannotStart(message, remedy=remedy)
    if isinstance(error, FileNotFoundError):
        return CannotStart(
            f"{shown} exists, but the interpreter in its first line (#!) does not",
            remedy=as_script,
            found=True,
        )
    if isinstance(error, PermissionError) and Path(name).is_dir():
        return CannotStart(f"{shown} is a directory, not a program", found=True)
    if isinstance(error, PermissionError):
        return CannotStart(
            f"permission denied: {shown} is not executable",
            remedy=as_script if name.endswith(".py") else f"chmod +x {shown}",
            found=True,
        )
    return CannotStart(f"{shown} could not be started: {error.strerror}", found=True)


def _not_found(command: Sequence[str]) -> tuple[str, str]:
    """What a word is that is no program, and what to type instead."""
    name, shown = command[0], printable(command[0])
    if Path(name).is_file() and "/" not in name:
        if name.endswith(".py"):
            message = f"{shown!r} is a Python script, not a program"
            return message, f"memdiag run -- python {_typed(command)}"
        if name.endswith(".sh") or os.access(name, os.X_OK):
            message = f"{shown!r} is a file of this directory, which is not on PATH"
            return message, f"memdiag run -- ./{_typed(command)}"
        return f"{shown!r} is a file, not a program", f"to judge it: memdiag analyze {shown}"
    if name == "-" and len(command) > 1:
        return "'-' is not a program", f"memdiag run -- {_typed(command[1:])}"
    if re.match(r"[A-Za-z_]\w*=", name) and len(command) > 1:
        rest = _typed(command[1:])
        return f"{shown!r} is a variable, not a program", f"{shown} memdiag run -- {rest}"
    if re.search(r"[|&;<>$`]", name):
        return f"{shown!r} is shell syntax, not a program", f"memdiag run -- sh -c {_typed([name])}"
    if " " in name.strip():
        rest = f" {_typed(command[1:])}" if len(command) > 1 else ""
        return (
            f"{shown!r} is one quoted word, not a program",
            f"leave out the quotes: memdiag run -- {shown.strip()}{rest}",
        )
    near = difflib.get_close_matches(name, _programs(), n=1, cutoff=_MISSPELLED)
    remedy = (
        f"did you mean {printable(near[0])!r}?" if near else "check PATH, or give the full path"
    )
    return f"command not found: {shown}", remedy


def _typed(words: Sequence[str]) -> str:
    return printable(shlex.join(words))


def _programs() -> set[str]:
    """Names of the programs on PATH."""
    found: set[str] = set()
    for directory in os.get_exec_path():
        with contextlib.suppress(OSError):
            found.update(entry.name for entry in Path(directory).iterdir())
    return found


def _is_keyed(letter: Letter) -> bool:
    """Return True for a signal of the kernel, or of memdiag itself for a key on its screen."""
    return letter.sender in {0, os.getpid()}


def _target_has_it(letter: Letter, seen: frozenset[int] | None, tree: Collection[int]) -> bool:
    if letter.sender in tree:
        return True  # sent by the target itself: it must not be sent back
    if seen is None:
        return _is_keyed(letter)  # without a witness: assume that keys signal whole groups
    return letter.number in seen


class Launched:
    """A started command as the subject of a measurement, until its end.

    Signals to memdiag alone are passed on to it. If the command ignores Ctrl-C, the third one
    ends memdiag and leaves it running. If memdiag ends the command, all processes of the tree get
    SIGTERM, and SIGKILL after a grace period.

    interrupts: how often the user pressed Ctrl-C (or somebody sent SIGINT).
    """

    INTERRUPTS_TO_LEAVE = 3

    def __init__(
        self, target: Target, witness: Witness | None, outlets: Outlets | None = None
    ) -> None:
        """outlets: what its output passes through, if its output is read."""
        self._target = target
        self._outlets = outlets
        self._witness = witness
        self._terminal_stops: set[signal.Signals] = set()
        self._is_keyed = False  # an interrupt came from the keyboard
        self._stop: signal.Signals | None = None
        self._termination = Termination()
        self._left: Collection[int] = ()
        self.interrupts = 0
        self.why_ended = ""

    @property
    def ended_by_key(self) -> bool:
        """Return True if Ctrl-C at the keyboard has killed the command."""
        ending = self._target.ending
        return self._is_keyed and ending is not None and ending.signal == signal.SIGINT

    @property
    def left_alone(self) -> bool:
        """Return True if the user has left while the command still runs."""
        return self._target.ending is None and self.interrupts >= self.INTERRUPTS_TO_LEAVE

    @property
    def ending(self) -> Ending:
        """How it ended, as far as known."""
        ending = self._target.ending
        if ending is None:
            why = f"left running by memdiag after the third Ctrl-C (pid {self._target.pid})"
            return Ending(why=why)
        return replace(ending, why=self.why_ended)

    def handle(self, letters: Sequence[Letter], pids: Collection[int]) -> Sequence[str]:
        """Pass on signals and check the command; returns messages for the user."""
        before = self.interrupts
        letters = [letter for letter in letters if letter.number != signal.SIGCHLD]
        if letters:
            self._deliver(letters, pids)
        self._target.look()
        self._follow_window(letters, pids)
        warned = before < self.INTERRUPTS_TO_LEAVE - 1 <= self.interrupts
        if self.left_alone:
            return (f"the command is left running (pid {self._target.pid})",)
        if not warned or self._target.ending is not None:
            return ()
        return ("the command has not ended yet; press Ctrl-C again to leave it running",)

    def _deliver(self, letters: Sequence[Letter], tree: Collection[int]) -> None:
        seen = self._witness.seen() if self._witness is not None else None
        for letter in letters:
            if letter.number == signal.SIGINT and letter.sender not in tree:
                self.interrupts += 1
                self._is_keyed = self._is_keyed or _is_keyed(letter)
            if letter.number == signal.SIGCONT:
                self._terminal_stops.clear()
            if letter.number in TERMINAL_STOPS:
                self._terminal_stops.add(letter.number)
            if letter.number in PASSED_ON and not _target_has_it(letter, seen, tree):
                self._target.send(letter.number)

    def _follow_window(self, letters: Sequence[Letter], pids: Collection[int]) -> None:
        """Resize the command's pseudo-terminal when the real terminal changes."""
        if self._outlets is None:
            return
        if any(letter.number == signal.SIGWINCH for letter in letters):
            self._outlets.follow_size()
        if self._outlets.resized() and self._target.ending is None:
            signal_all({*pids, self._target.pid}, signal.SIGWINCH)

    def over(self) -> bool:
        """Return True if the command has ended (and the tree, if memdiag ends it), or was left."""
        if self._target.ending is None:
            return self.left_alone
        if not self._termination.has_begun or self._termination.is_over:
            return True
        return not signal_all(self._left, 0)  # they are looked for: the last sample may be old

    def pause_wanted(self) -> bool:
        """Return True once for each stop of the command by its terminal.

        Then memdiag has to stop too, so that the shell shows its prompt. A command that was stopped
        otherwise (`kill -STOP PID`) does not stop memdiag.
        """
        stopped_by = self._target.stopped_by
        self._stop = stopped_by if stopped_by in self._terminal_stops else None
        if self._stop is not None:
            self._terminal_stops.clear()
        return self._stop is not None

    def uses_terminal(self) -> bool:
        """Return True if the wanted pause is because the command uses the terminal."""
        return self._stop in {signal.SIGTTIN, signal.SIGTTOU}

    def pause(self) -> None:
        """Stop in the same way as the command; returns when continued."""
        if self._stop is not None:
            stop_self(self._stop)

    def resume(self) -> None:
        """Continue the command and all of its process group."""
        os.kill(0, signal.SIGCONT)

    def end(self, why: str, pids: Collection[int]) -> None:
        """Send SIGTERM to the command and `pids`, later SIGKILL. Call this until `over`."""
        if self._target.ending is None:
            pids = {*pids, self._target.pid}
        self._left = pids
        self.why_ended = self.why_ended or why
        self._termination.advance(pids)

    stop = end

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to the command. Returns False if it has ended, or may not be sent."""
        return self._target.send(number)


class Termination:
    """SIGTERM to processes, and SIGKILL after a grace period."""

    GRACE_S = 10.0  # the default of container runtimes

    def __init__(self) -> None:
        self._kill_at_s: float | None = None
        self.is_over = False

    @property
    def has_begun(self) -> bool:
        """Return True once SIGTERM was sent."""
        return self._kill_at_s is not None

    def advance(self, pids: Collection[int]) -> None:
        """Send SIGTERM to `pids` the first time, SIGKILL later. Call it until they have ended."""
        now_s = time.monotonic()
        if self._kill_at_s is None:
            self._kill_at_s = now_s + self.GRACE_S
            signal_all(pids, signal.SIGTERM)
            signal_all(pids, signal.SIGCONT)  # a stopped process cannot react
        elif now_s >= self._kill_at_s and not self.is_over:
            self.is_over = True
            signal_all(pids, signal.SIGKILL)


def signal_all(pids: Iterable[int], number: int) -> bool:
    """Send a signal to each live process of `pids`; 0 sends none. Returns True if there was one."""
    sent = False
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            sent = True
    return sent


def stop_self(number: signal.Signals) -> None:
    """Stop this process by the signal `number`; returns when it is continued."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
