"""Receives signals sent to memdiag, and finds out if the target has received them too.

memdiag shares the target's process group, so a terminal's Ctrl-C and Ctrl-Z, a shell's job control
and `kill -- -PGID` reach the target as without memdiag. A signal to memdiag alone (`kill PID`, a
container's stop, a CI runner) has to be passed on, but not one that the target has received itself:
a second SIGUSR1 writes a second checkpoint. The receiver cannot distinguish the two, so a `Witness`
process is in the group too: every signal that it receives was sent to the whole group.

memdiag's signals are blocked and polled: no handler interrupts it, no signal is lost, and the
target starts with the signal mask that memdiag was started with.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Collection
from dataclasses import dataclass
from types import TracebackType

from memdiag.capture.launch.fork_helper import forked

Signals = frozenset[signal.Signals]

# Signals that are sent to jobs, without those that a fault raises in the process itself.
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
    """A received signal. `sender` is the pid of its sender, 0 for the kernel or unknown."""

    number: signal.Signals
    sender: int = 0


class Mailbox:
    """Blocks `signals` while it is entered, and receives them.

    Signals that are ignored at the start of memdiag (nohup, a shell's `&`) stay ignored, also in
    the target. `inherited_mask` is the signal mask for the target.
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
        self.wait(0.0)  # the rest was sent to a target that has ended
        signal.pthread_sigmask(signal.SIG_SETMASK, self.inherited_mask)

    def wait(self, timeout_s: float) -> list[Letter]:
        """The received signals; waits for one for at most `timeout_s`."""
        first = _next_letter(self.signals, timeout_s)
        return [] if first is None else [first, *_pending(self.signals)]


class Witness:
    """A small process in memdiag's process group that records the signals it receives.

    If memdiag is killed by SIGKILL, it writes `last_words` (which restore the terminal) to
    `terminal`. It has no other open descriptor, and ends with memdiag.
    """

    _REPORT, _GOODBYE = b"r", b"g"
    # The time that the kernel takes to signal all members of a group, and a process to answer.
    # Heuristic: far above those of a loaded machine.
    _GRACE_S, _PATIENCE_S = 0.01, 1.0

    def __init__(self, signals: Signals, *, terminal: int | None = None, last_words: bytes = b""):
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self.pid = forked(
            lambda: _record(requests, answers, signals, terminal, last_words),
            keeps={requests, answers} | ({terminal} if terminal is not None else set()),
            name="memdiag-witness",
        )
        os.close(requests)
        os.close(answers)

    def seen(self) -> frozenset[int] | None:
        """Numbers of the signals sent to the whole group since the last call.

        None if the witness does not answer (it was killed).
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
        """End it, without writing `last_words`."""
        with contextlib.suppress(OSError):  # it has ended already
            os.write(self._requests, self._GOODBYE)
        os.close(self._requests)
        os.close(self._answers)
        with contextlib.suppress(ChildProcessError):  # it was killed, and collected then
            os.waitpid(self.pid, 0)


def _record(
    requests: int, answers: int, signals: Signals, terminal: int | None, last_words: bytes
) -> None:
    """Run in the witness process until memdiag dismisses it or exits."""
    while request := os.read(requests, 1):
        if request == Witness._GOODBYE:
            return
        bits = sum(1 << number for number in {letter.number for letter in _pending(signals)})
        os.write(answers, bits.to_bytes(16, "little"))
    if terminal is not None:
        os.write(terminal, last_words)


def _pending(signals: Signals) -> list[Letter]:
    letters = []
    while (letter := _next_letter(signals, 0.0)) is not None:
        letters.append(letter)
    return letters


def _next_letter(signals: Signals, timeout_s: float) -> Letter | None:
    if not hasattr(signal, "sigtimedwait"):
        return _next_letter_by_polling(signals, timeout_s)
    info = signal.sigtimedwait(signals, timeout_s)
    # If this process was stopped for longer than the timeout, Python returns uninitialized memory
    # (its loop ends at the deadline, after EINTR, without a signal).
    if info is None or info.si_signo not in signals:
        return None
    return Letter(number=signal.Signals(info.si_signo), sender=info.si_pid)


def _next_letter_by_polling(signals: Signals, timeout_s: float) -> Letter | None:
    """For macOS, without sigtimedwait: a signal is received at the next tick."""
    if timeout_s > 0 and not signal.sigpending() & signals:
        select.select([], [], [], timeout_s)
    arrived = signal.sigpending() & signals
    return Letter(number=signal.Signals(signal.sigwait(arrived))) if arrived else None
