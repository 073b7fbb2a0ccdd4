"""memdiag's side of the live screen: starts its process, feeds it, and takes the terminal back."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

from memdiag.capture.launch.foreground import hand_over, is_orphaned, open_terminal
from memdiag.capture.launch.fork_helper import forked
from memdiag.capture.launch.output_tee import Outlets
from memdiag.cli.output.messages import STDERR, say
from memdiag.screen import process
from memdiag.screen.messages import About, Frame, Order, Wish, WishKind, pair
from memdiag.values.findings import Finding
from memdiag.values.measurements import Sample

T = TypeVar("T")

# Leaves what a screen may have switched on: alternate screen, hidden cursor, mouse, paste, focus
# and key reports, line wrap, colors.
_SETTLE = (
    b"\033[<u\033[?1049l\033[?25h\033[?1000l\033[?1003l\033[?1015l\033[?1006l\033[?1004l"
    b"\033[?2004l\033[?2048l\033[?7h\033[m"
)
_LEAVES_WITHIN_S = 3.0  # a screen that takes longer has failed. Heuristic.
_ENDS_WITHIN_S = 1.0
_AT_A_TIME = 50  # samples or findings, so that a message fits into the socket. Heuristic.


class LiveScreen:
    """A screen that has the terminal while it `is_on`. Create it before there is any thread.

    No method fails: if the screen does, `failure` is the reason, and `release` restores the
    terminal. pid: the process that draws it. cpu_s: what it has used.
    """

    def __init__(
        self,
        *,
        title: str,
        is_ours: bool,
        outlets: Outlets | None,
    ) -> None:
        """outlets: what the job's output passes through. Raises OSError."""
        self._outlets = outlets
        self._group = os.getpgrp()
        self._terminal = open_terminal()
        self._modes = termios.tcgetattr(self._terminal)
        self._said: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        self._stderr: int | None = None
        self._samples: list[Sample] = []
        self._sent: dict[tuple[str, str], Finding] = {}
        self._is_restored = False
        self.is_on = False
        self.failure = ""
        self.cpu_s = 0.0
        self._link, theirs = pair()
        copies = outlets.copies(-1) if outlets is not None else ()
        descriptors = process.Descriptors(
            terminal=self._terminal, copies=copies, said=self._said.fileno()
        )
        about = About(
            title=title,
            is_ours=is_ours,
            can_stop=not is_orphaned(),
            ascii_only=not (sys.stderr.encoding or "").lower().startswith("utf"),
            directory=_directory(),
        )
        life = partial(process.live, theirs, descriptors, about, self._group)
        self.pid = forked(life, keeps=process.keeps(theirs, descriptors), name="memdiag-screen")
        with contextlib.suppress(OSError):  # it has done so itself
            os.setpgid(self.pid, self.pid)
        theirs.close()
        for copy in copies:
            os.close(copy)

    def reserve(self) -> None:
        """Show it, if memdiag has the terminal."""
        if self.is_on or self._link.is_closed or not self._is_ours(self._group):
            return
        if not hand_over(self._terminal, self.pid):
            return
        self.is_on, self._is_restored = True, False
        if self._outlets is not None:
            self._outlets.hold()
        sys.stderr.flush()
        self._stderr = os.dup(STDERR)
        os.dup2(self._said.fileno(), STDERR)
        self._link.send(Order.SHOW)

    def release(self, note: str = "") -> None:
        """Take the terminal back, and show there what was kept from it, after `note`."""
        if not self.is_on:
            return
        self.is_on = False
        if not self._is_restored:
            self._link.send(Order.LEAVE)
            if not self._has_left():
                self._take_by_force()
        if self._is_ours(self.pid):
            hand_over(self._terminal, self._group)
        sys.stderr.flush()
        if self._stderr is not None:
            os.dup2(self._stderr, STDERR)
            os.close(self._stderr)
            self._stderr = None
        if note:
            say(note)
        if self._outlets is not None:
            self._outlets.release()
        self._said.seek(0)
        with contextlib.suppress(OSError):
            os.write(STDERR, self._said.read())
        self._said.seek(0)
        self._said.truncate()

    def close(self) -> None:
        """End it; again is harmless."""
        if self._said.closed:
            return
        self.release()
        self._link.close()
        until_s = time.monotonic() + _ENDS_WITHIN_S
        with contextlib.suppress(ChildProcessError):  # it was collected
            while os.waitpid(self.pid, os.WNOHANG)[0] == 0 and time.monotonic() < until_s:
                time.sleep(_ENDS_WITHIN_S / 100)
        self._said.close()
        os.close(self._terminal)

    def take(self, samples: Sequence[Sample]) -> None:
        """Samples for the next frame."""
        self._samples += samples

    def show(self, frame: Frame) -> None:
        """Send a frame: with the samples since the last one, and without findings sent before."""
        samples, self._samples = self._samples, []
        if self._link.is_closed:
            return
        changed = [found for found in frame.series if not self._was_sent(found)]
        rest = max(0, len(samples) - _AT_A_TIME)
        for some in _batches(samples[:rest]):
            self._link.send(Frame(samples=tuple(some)))
        for more in _batches(changed[_AT_A_TIME:]):
            self._link.send(Frame(series=tuple(map(_brief, more))))
        self._link.send(
            replace(
                frame,
                samples=tuple(samples[rest:]),
                found=None if frame.found is None else _brief(frame.found),
                series=tuple(map(_brief, changed[:_AT_A_TIME])),
                is_whole=True,
            )
        )

    def _was_sent(self, found: Finding) -> bool:
        key = (found.process, found.metric)
        before = self._sent.get(key)
        self._sent[key] = found
        return before is found

    def wishes(self) -> list[Wish]:
        """What the user wants of memdiag. Signals are sent at once, to the job's group."""
        found = []
        while (message := self._link.receive()) is not None:
            if not isinstance(message, Wish):
                continue
            if message.kind is WishKind.GONE:
                self._note_end(message)
                if not self.failure:  # a shell has taken the terminal
                    self.release()
            elif message.kind is WishKind.SIGNAL and message.signal is not None:
                self._send(message.signal)
            else:
                found.append(message)
        if self.is_on and self._link.is_closed:
            self.failure = self.failure or "its process has ended"
        return found

    def _send(self, number: signal.Signals) -> None:
        """Send a signal to the job's process group, memdiag included, as the terminal does."""
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        stops_here = number is signal.SIGTSTP and number not in blocked
        if stops_here:
            self.release()
        os.kill(0, number)
        if stops_here:
            self.reserve()

    def _note_end(self, message: Wish) -> None:
        self.cpu_s = message.cpu_s
        self._is_restored = True
        if message.failure:
            self.failure = message.failure
            self._link.is_closed = True

    def _has_left(self) -> bool:
        until_s = time.monotonic() + _LEAVES_WITHIN_S
        while not self._link.is_closed and (left_s := until_s - time.monotonic()) > 0:
            select.select([self._link], [], [], left_s)
            while isinstance(message := self._link.receive(), Wish):
                if message.kind is WishKind.GONE:
                    self._note_end(message)
                    return True
        return False

    def _take_by_force(self) -> None:
        self.failure = self.failure or "it did not leave the terminal"
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._link.is_closed = True
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        with contextlib.suppress(OSError, termios.error):
            os.write(self._terminal, _SETTLE)
            termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._modes)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _is_ours(self, group: int) -> bool:
        try:
            return os.tcgetpgrp(self._terminal) == group
        except OSError:  # the terminal is gone
            return False


def _batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[at : at + _AT_A_TIME] for at in range(0, len(values), _AT_A_TIME))


def _brief(found: Finding) -> Finding:
    """The finding without what the screen has itself, or does not show."""
    return replace(
        found, trace=(), tops=(), trail=(), segments=(), forecasts=(), phases=(), recurring=None
    )


def _directory() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return "/"
