"""The process of the screen, which has the terminal while the screen is shown.

It is in a process group of its own, which memdiag makes the terminal's foreground group. If it
fails, memdiag restores the terminal and goes on; if memdiag is killed, it restores the terminal.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from memdiag.capture.launch.foreground import hand_over
from memdiag.screen.messages import About, Frame, Link, Order, Wish, WishKind

_BLOCKED = frozenset(
    {
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
        signal.SIGCONT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
        signal.SIGCHLD,
    }
)
_LESS_URGENT = 5  # the target comes first


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptors:
    """terminal: the controlling one. copies: of the job's output. said: memdiag's messages."""

    terminal: int
    copies: tuple[int, ...]
    said: int


def live(link: Link, descriptors: Descriptors, about: About, job_group: int) -> None:
    """The life of the process; returns when memdiag has ended."""
    with contextlib.suppress(OSError):  # it leads a session
        os.setpgid(0, 0)
    with contextlib.suppress(OSError):
        os.nice(_LESS_URGENT)
    _use_terminal(descriptors.terminal, ascii_only=about.ascii_only)
    if not about.can_stop:
        _keep_stoppable(job_group)
    signal.pthread_sigmask(signal.SIG_SETMASK, _BLOCKED)
    with contextlib.suppress(OSError):  # it was removed
        os.chdir(about.directory)
    try:
        from memdiag.screen.app import LiveApp
        from memdiag.screen.view import View

        view = View(about, descriptors.copies, descriptors.said)
    except Exception as error:
        link.send(Wish(kind=WishKind.GONE, failure=f"{type(error).__name__}: {error}"))
        return
    while True:
        message = link.receive(waits=True)
        if link.is_closed:
            break
        if isinstance(message, Frame):
            view.take(message)
        elif message is Order.SHOW:
            app = LiveApp(view, link)
            failure = _shown(app)
            if link.is_closed:
                break
            link.send(Wish(kind=WishKind.GONE, failure=failure, cpu_s=time.process_time()))
        elif message is Order.LEAVE:
            link.send(Wish(kind=WishKind.GONE, cpu_s=time.process_time()))
    with contextlib.suppress(OSError):
        if os.tcgetpgrp(descriptors.terminal) == os.getpgrp():
            hand_over(descriptors.terminal, job_group)


def _shown(app: object) -> str:
    """Run the app until it ends; why it failed, "" if it did not."""
    try:
        app.run(mouse=False)  # type: ignore[attr-defined]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    failed = app.failed  # type: ignore[attr-defined]
    return str(failed)


def _use_terminal(terminal: int, *, ascii_only: bool) -> None:
    """Make it the standard streams, where Textual looks for it, and forget fixed sizes."""
    for descriptor in (0, 1, 2):
        os.dup2(terminal, descriptor)
    encoding = "ascii" if ascii_only else "utf-8"
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc] # noqa: SIM115
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = open(  # noqa: SIM115
            descriptor, "w", encoding=encoding, errors="replace", closefd=False
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)


def _keep_stoppable(job_group: int) -> None:
    """Fork a member of the job's group with a parent outside of it, so that the kernel stops the
    job if it uses the terminal, instead of letting it fail. It ends with this process.
    """
    ends, stays = os.pipe()
    if os.fork() == 0:
        try:
            os.close(stays)
            os.setpgid(0, job_group)
            os.read(ends, 1)
        finally:
            os._exit(0)
    os.close(ends)
    os.set_inheritable(stays, False)


def keeps(link: Link, descriptors: Descriptors) -> Sequence[int]:
    """The descriptors that the process needs."""
    return (link.fileno(), descriptors.terminal, descriptors.said, *descriptors.copies)
