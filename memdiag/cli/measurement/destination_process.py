"""Processes that send a measurement to trackers (`--to`), one for each.

A tracker that is slow, hangs, prints, or ends its process disturbs neither sampling nor the target.
What it starts itself is not in the tree of the target.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from memdiag.capture.launch.fork_helper import forked
from memdiag.capture.launch.target import adopt_orphans
from memdiag.cli.output.messages import STDERR, say, unfailing
from memdiag.destinations.request import Request
from memdiag.errors import CannotMeasure
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.destinations.destination import Destination
    from memdiag.destinations.messages import Message, Row

# How long memdiag waits for the trackers once the job has ended. Heuristic.
PATIENCE_S = 30.0
_QUEUE = 10_000  # rows that wait for a slow tracker; the oldest are dropped
_PAUSE_S = 0.5  # between two calls of a tracker
_LONGEST_BYTES = 1 << 20
_LONGEST_REASON = 200
_CREDENTIALS = re.compile(r"://[^/\s@]*@")


@dataclass(slots=True)
class _Child:
    """A process. lost: messages that it did not take."""

    request: Request
    pid: int
    socket: socket.socket
    lost: int = 0


class DestinationProcesses:
    """The processes. Create them before there is any thread. Raises CannotMeasure.

    limits_bytes: the limits that were sent last, by name, for the end.
    """

    def __init__(
        self, requests: Sequence[Request], environ: Mapping[str, str], *, is_quiet: bool
    ) -> None:
        """requests: checked. environ: see `RUN_VARIABLES`. is_quiet: only failures are said."""
        self._children: list[_Child] = []
        self.limits_bytes: dict[str, int] = {}
        self._directory: Path | None = None
        try:
            if requests:
                self._directory = Path(tempfile.mkdtemp(prefix="memdiag-"))
            for request in requests:
                self._children.append(_started(request, environ, is_quiet))
        except OSError as error:
            self.finish(patience_s=0.0)
            raise CannotMeasure(f"--to cannot be prepared: {error.strerror}") from error

    @property
    def pids(self) -> frozenset[int]:
        """Their pids."""
        return frozenset(child.pid for child in self._children)

    @property
    def directory(self) -> Path | None:
        """A private directory for the report's files, until `finish`; None without trackers."""
        return self._directory

    def send(self, message: Message, *, patience_s: float = 0.0) -> None:
        """Send a message to all, and do not wait longer than that for one that takes none."""
        if not self._children:
            return
        from memdiag.destinations.messages import encode

        data = encode(message)
        for child in self._children:
            child.socket.settimeout(patience_s)  # 0: does not wait
            try:
                child.socket.send(data, socket.MSG_NOSIGNAL)
            except OSError:
                child.lost += 1

    def finish(self, *, patience_s: float = PATIENCE_S) -> None:
        """Wait for them to end, unless Ctrl-C is pressed, and say what was not sent.

        Called again, it does nothing.
        """
        until_s = time.monotonic() + patience_s
        for child in self._children:
            with contextlib.suppress(OSError):
                child.socket.shutdown(socket.SHUT_WR)
        for child in self._children:
            try:
                said = _answer(child, until_s)
            except KeyboardInterrupt:
                said, until_s = None, 0.0
            if said is None and patience_s:
                say(f"{child.request}: given up before everything was sent")
            elif said != b"." and patience_s:
                say(f"{child.request}: its process has ended before it had sent everything")
            child.socket.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # collected with the target's processes
                os.waitpid(child.pid, 0)
        self._children = []
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None


def _answer(child: _Child, until_s: float) -> bytes | None:
    """What the process says at its end: b"." if all is done, b"" if it was killed; None for no
    answer in time.
    """
    child.socket.settimeout(0.1)
    while True:
        try:
            return child.socket.recv(16)
        except TimeoutError:
            if time.monotonic() > until_s or signal.SIGINT in signal.sigpending():
                return None
        except OSError:
            return b""


def _started(request: Request, environ: Mapping[str, str], is_quiet: bool) -> _Child:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    directory = os.getcwd()  # noqa: PTH109
    try:
        pid = forked(
            lambda: _live(_Worker(request, environ, is_quiet), theirs, directory),
            keeps={theirs.fileno(), STDERR},
            name="memdiag-to",
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return _Child(request, pid, ours)


def _live(worker: _Worker, pipe: socket.socket, directory: str) -> None:
    """What runs in the process."""
    adopt_orphans()  # else what a tracker leaves behind would be in the tree of the target
    stderr = _only_stderr()
    with contextlib.suppress(OSError):
        os.chdir(directory)
    threading.Thread(target=worker.receive, args=(pipe,), daemon=True).start()
    worker.work(stderr)
    with contextlib.suppress(OSError):
        pipe.send(b".")


def _only_stderr() -> TextIO:
    """The only way to stderr: what libraries print is lost."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):  # else what is opened next would get these numbers
        os.dup2(nowhere, descriptor)
    stderr = unfailing(os.dup(STDERR), "utf-8")
    os.dup2(nowhere, STDERR)
    sys.stdin = open(os.devnull)  # noqa: SIM115, PTH123
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
    logging.disable(logging.CRITICAL)
    return stderr


class _Worker:
    """Takes messages in one thread, and sends them on in another."""

    def __init__(self, request: Request, environ: Mapping[str, str], is_quiet: bool) -> None:
        self._request, self._environ, self._is_quiet = request, environ, is_quiet
        self._ready = threading.Condition()
        self._rows: deque[Row] = deque(maxlen=_QUEUE)
        self._other: deque[Message] = deque()
        self._over = threading.Event()
        self._unsent = 0
        self._has_failed = False

    def receive(self, pipe: socket.socket) -> None:
        """Take messages until memdiag has closed its end."""
        from memdiag.destinations.messages import Row, decode

        while data := pipe.recv(_LONGEST_BYTES):
            message = decode(data)
            with self._ready:
                if isinstance(message, Row):
                    self._unsent += len(self._rows) == _QUEUE
                    self._rows.append(message)
                else:
                    self._other.append(message)
                self._ready.notify()
        with self._ready:
            self._over.set()
            self._ready.notify()

    def work(self, stderr: TextIO) -> None:
        """Send everything on, until memdiag has ended. stderr: for messages."""
        self._stderr = stderr
        from memdiag.destinations.messages import End, Judgment, Run

        destination: Destination | None = None
        end: End | None = None
        while True:
            rows, others, is_over = self._taken()
            for message in others:
                if isinstance(message, Run):
                    destination = self._started(message)
                elif isinstance(message, Judgment) and destination is not None:
                    self._try(destination.judge, message)
                elif isinstance(message, End):
                    end = message
            if rows and (destination is None or not self._try(destination.rows, rows)):
                self._unsent += len(rows)
            if is_over:
                break
            self._over.wait(_PAUSE_S)
        if destination is not None:
            self._try(destination.finish, end)
        if self._unsent:
            self._say(f"{self._unsent:,} samples were not sent")

    def _taken(self) -> tuple[list[Row], list[Message], bool]:
        with self._ready:
            self._ready.wait_for(lambda: self._rows or self._other or self._over.is_set())
            taken = list(self._rows), list(self._other), self._over.is_set()
            self._rows.clear()
            self._other.clear()
        return taken

    def _started(self, run: Message) -> Destination | None:
        module = import_module(f"memdiag.destinations.{self._request.kind}")
        destination: Destination = module.make(self._request.where, self._environ)
        return destination if self._try(destination.start, run, self._note) else None

    def _try(self, call: Callable[..., None], *arguments: Any) -> bool:
        """Call a tracker; says what fails for the first time."""
        try:
            call(*arguments)
        except BaseException as error:  # libraries raise SystemExit, too
            if not self._has_failed:
                self._say(_reason(error))
            self._has_failed = True
            return False
        return True

    def _note(self, text: str) -> None:
        if not self._is_quiet:
            self._say(text)

    def _say(self, text: str) -> None:
        self._stderr.write(f"memdiag: {self._request}: {printable(text)}\n")


def _reason(error: BaseException) -> str:
    text = (getattr(error, "strerror", None) or str(error) or type(error).__name__).strip()
    first = _CREDENTIALS.sub("://...@", text.splitlines()[0])[:_LONGEST_REASON]
    return f"failed, and the run goes on: {first}"
