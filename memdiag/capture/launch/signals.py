"""Signals sent to memdiag, and whether the target has got them already.

memdiag shares the target's process group, so that a terminal's Ctrl-C and Ctrl-Z, a shell's job
control and `kill -- -PGID` reach the target as if memdiag were not there. A signal sent to
memdiag alone (`kill PID`, a container's stop, a CI runner) has to be passed on, and one that the
target got itself must not be: a second SIGUSR1 writes a second checkpoint. The two look the same
to the receiver, so a `Witness` sits in the group as well: what it has seen, everybody has.

memdiag's own signals are blocked and fetched like mail: no handler runs at an odd moment, none is
lost, and the target starts with the signal mask that memdiag was started with.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Collection
from dataclasses import dataclass
from types import TracebackType

from memdiag.capture.launch.fork_helper import keep_only

Signals = frozenset[signal.Signals]

# What people and programs send to a job. Not those that a fault raises in the process itself.
PASSED_ON: Signals = frozenset(
    {
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
        signal.SIGWINCH,
        signal.SIGCONT,
        signal.SIGTSTP,
    }
)
# Job control stops a background job that uses the terminal: always the whole group.
TERMINAL_STOPS: Signals = frozenset({signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A signal that arrived. `sender` is the pid that sent it, 0 for the kernel or unknown."""

    number: signal.Signals
    sender: int = 0


class Mailbox:
    """Holds `signals` back from the moment it is entered until it is left.

    Signals that memdiag was started with ignoring (nohup, a shell's `&`) are left alone: the
    target inherits that. `inherited_mask` is the mask to start the target with.
    """

    def __init__(self, signals: Signals = PASSED_ON | TERMINAL_STOPS) -> None:
        ignored = {s for s in signals if signal.getsignal(s) is signal.SIG_IGN}
        self.signals: Signals = (signals - ignored) | {signal.SIGCHLD}
        self.inherited_mask: Collection[int] = ()

    def __enter__(self) -> Mailbox:
        self.inherited_mask = signal.pthread_sigmask(signal.SIG_BLOCK, self.signals)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.wait(0.0)  # what is left was meant for a target that is gone
        signal.pthread_sigmask(signal.SIG_SETMASK, self.inherited_mask)

    def wait(self, timeout_s: float) -> list[Letter]:
        """What arrived, at once if there is something, else after at most `timeout_s`."""
        first = _next_letter(self.signals, timeout_s)
        return [] if first is None else [first, *_pending(self.signals)]


class Witness:
    """A tiny process in memdiag's process group that notes the signals it gets.

    It also outlives a SIGKILL of memdiag for a moment, to write `last_words` (what puts the
    terminal back in order) to `terminal`. It holds no other descriptor, and ends with memdiag.
    """

    _REPORT, _GOODBYE = b"r", b"g"
    # The kernel signals the members of a group one after the other; and when it did, a
    # process gets to run: both chosen, far above what a loaded machine shows.
    _GRACE_S, _PATIENCE_S = 0.01, 1.0

    def __init__(self, signals: Signals, *, terminal: int | None = None, last_words: bytes = b""):
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _testify(requests, answers, signals, terminal, last_words)
        os.close(requests)
        os.close(answers)

    def seen(self) -> frozenset[int] | None:
        """Numbers of the signals that came to the whole group since the last question.

        None when the witness does not answer (somebody killed it).
        """
        select.select([], [], [], self._GRACE_S)
        try:
            os.write(self._requests, self._REPORT)
            ready, _, _ = select.select([self._answers], [], [], self._PATIENCE_S)
            answer = os.read(self._answers, 16) if ready else b""
        except OSError:
            return None
        if len(answer) != 16:
            return None
        bits = int.from_bytes(answer, "little")
        return frozenset(number for number in range(128) if bits >> number & 1)

    def dismiss(self) -> None:
        """Let it go, without last words."""
        with contextlib.suppress(OSError):  # it is gone already
            os.write(self._requests, self._GOODBYE)
        os.close(self._requests)
        os.close(self._answers)
        with contextlib.suppress(ChildProcessError):  # somebody killed it, it was collected then
            os.waitpid(self.pid, 0)


def _testify(
    requests: int, answers: int, signals: Signals, terminal: int | None, last_words: bytes
) -> None:
    """The life of the witness; never returns."""
    try:
        keeps = {requests, answers} | ({terminal} if terminal is not None else set())
        keep_only(keeps, "memdiag-witness")
        while request := os.read(requests, 1):
            if request == Witness._GOODBYE:
                os._exit(0)
            bits = sum(1 << number for number in {letter.number for letter in _pending(signals)})
            os.write(answers, bits.to_bytes(16, "little"))
        if terminal is not None:
            os.write(terminal, last_words)
    finally:
        os._exit(0)


def _pending(signals: Signals) -> list[Letter]:
    letters = []
    while (letter := _next_letter(signals, 0.0)) is not None:
        letters.append(letter)
    return letters


def _next_letter(signals: Signals, timeout_s: float) -> Letter | None:
    if not hasattr(signal, "sigtimedwait"):
        return _next_letter_by_polling(signals, timeout_s)
    info = signal.sigtimedwait(signals, timeout_s)
    # Python returns what it finds in memory where a stop of this process outlasted the wait (its
    # loop ends at the deadline, after EINTR, without a signal).
    if info is None or info.si_signo not in signals:
        return None
    return Letter(number=signal.Signals(info.si_signo), sender=info.si_pid)


def _next_letter_by_polling(signals: Signals, timeout_s: float) -> Letter | None:
    """For macOS, which has no sigtimedwait: a signal waits until the next tick."""
    if timeout_s > 0 and not signal.sigpending() & signals:
        select.select([], [], [], timeout_s)
    arrived = signal.sigpending() & signals
    return Letter(number=signal.Signals(signal.sigwait(arrived))) if arrived else None
