"""Copies what the target writes to stdout and stderr, if an option asks for it.

Each of the two streams is replaced by one of the same kind, a pseudo-terminal for a terminal and a
pipe for anything else. If both lead to the same file they share one, which keeps their order. A
small process passes every byte on, and copies it to the processes that search for tags and that
show the last lines. It never waits for those: if a copy is not read fast enough, parts of the copy
are dropped and counted. While memdiag's screen has the terminal, what belongs there is kept, and
passed on once the terminal is free.

The target stays in memdiag's session and process group, and its stdin is unchanged, so job control,
Ctrl-C and end of file come from the real terminal. The pump runs as long as any process has the
stream open, also after memdiag's exit.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import stat
import struct
import sys
import tempfile
import termios
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from memdiag.capture.launch.fork_helper import forked

_STREAMS = (1, 2)
_AT_A_TIME = 64 << 10
# How far the copy may lag before parts of it are dropped. Heuristic: seconds of a busy log.
_SPILL_BYTES = 8 << 20
_PIPE_BYTES = 1 << 20
_SIZE = struct.Struct("HHHH")
_DRAIN, _RESIZE, _UNCHANGED, _HOLD, _RELEASE = b"d", b"w", b"-", b"h", b"r"
# How much output is kept for the terminal: half of it, up to all. Heuristic: hours of a busy log.
_BACKLOG_BYTES = 64 << 20
# The longest wait for a terminal that takes no output (Ctrl-S, a slow line). Heuristic.
_RELEASE_S = 10.0
# If memdiag was killed, its screen needs this long to restore the terminal. Heuristic.
_RESTORED_S = 1.0
# Header of each piece of the copy: its time (monotonic), bytes dropped before it, its length.
FRAME = struct.Struct("<dQQ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """One replaced stream.

    streams: the target's descriptors for it. theirs: our descriptor that the target gets for them.
    copies: the descriptors to read the copies from, one for each reader.
    """

    streams: tuple[int, ...]
    theirs: int
    copies: tuple[int, ...]
    is_terminal: bool
    requests: int
    answers: int
    pid: int


class Outlets:
    """All replaced streams of one target. Create it before any thread is started."""

    def __init__(
        self, readers: int = 1, *, is_held: bool = False, only_terminals: bool = False
    ) -> None:
        """readers: how many read a copy. is_held: see `hold`, from the beginning."""
        self._outlets = tuple(
            _outlet(streams, readers, is_held)
            for streams in _places()
            if _is_terminal(streams[0]) or not only_terminals
        )
        self._is_started = False

    @property
    def streams(self) -> dict[int, int]:
        """The target's descriptor -> our descriptor for it."""
        return {s: outlet.theirs for outlet in self._outlets for s in outlet.streams}

    def copies(self, reader: int = 0) -> tuple[int, ...]:
        """The descriptors for a reader to read its copies from, in FRAMEs."""
        return tuple(outlet.copies[reader] for outlet in self._outlets)

    @property
    def pids(self) -> frozenset[int]:
        """The pids of the pumps."""
        return frozenset(outlet.pid for outlet in self._outlets)

    def started(self) -> None:
        """Close our ends after the target has started, so that the end of the streams is seen."""
        if not self._is_started:
            self._is_started = True
            for outlet in self._outlets:
                os.close(outlet.theirs)

    def follow_size(self) -> None:
        """Copy a new size of the terminal's window to the pseudo-terminal."""
        for outlet in self._outlets:
            if outlet.is_terminal:
                _ask(outlet, _RESIZE)

    def resized(self) -> bool:
        """Return True if the pseudo-terminal's size has changed. Never waits."""
        found = False
        for outlet in self._outlets:
            if outlet.is_terminal:
                found = _RESIZE in _answers(outlet) or found
        return found

    def hold(self) -> None:
        """Keep what goes to the terminal, until `release`."""
        for outlet in self._outlets:
            if outlet.is_terminal:
                _ask(outlet, _HOLD)

    def release(self) -> None:
        """Pass on what was kept, and from now on everything."""
        until_s = time.monotonic() + _RELEASE_S
        for outlet in self._outlets:
            if outlet.is_terminal:
                _ask(outlet, _RELEASE)
                while not _answered(outlet, _RELEASE) and time.monotonic() < until_s:
                    pass

    def drain(self, patience: Callable[[], bool]) -> None:
        """Wait until all output has been passed on, while `patience` returns True."""
        for outlet in self._outlets:
            _ask(outlet, _DRAIN)
            while not _answered(outlet, _DRAIN) and patience():
                pass

    def close(self) -> None:
        """Close the control pipes. The streams stay open for the processes that use them."""
        self.started()
        for outlet in self._outlets:
            for descriptor in (outlet.requests, outlet.answers):
                os.close(descriptor)


def _places() -> list[tuple[int, ...]]:
    """The open streams, grouped by their file."""
    places: dict[tuple[int, int, int], tuple[int, ...]] = {}
    for stream in _STREAMS:
        with contextlib.suppress(OSError):
            found = os.fstat(stream)
            key = (found.st_dev, found.st_ino, found.st_rdev)
            # Terminals of different mounts may have the same number: use st_dev and st_ino too.
            places[key] = (*places.get(key, ()), stream)
    return list(places.values())


def _is_terminal(stream: int) -> bool:
    return stat.S_ISCHR(os.fstat(stream).st_mode) and os.isatty(stream)


def _outlet(streams: tuple[int, ...], readers: int, is_held: bool) -> Outlet:
    sink = streams[0]
    is_terminal = _is_terminal(sink)
    source, theirs = _pseudo_terminal(sink) if is_terminal else os.pipe()
    pipes = [os.pipe() for _ in range(readers)]
    tees = tuple(tee for _, tee in pipes)
    for tee in tees:
        _widen(tee)
    asked, requests = os.pipe()
    answers, answering = os.pipe()
    os.set_blocking(requests, False)
    os.set_blocking(answers, False)
    ours = (source, *tees, asked, answering)
    pid = forked(
        lambda: Pump(
            source=source,
            sink=sink,
            tees=tees,
            requests=asked,
            answers=answering,
            is_held=is_held and is_terminal,
        ).run(),
        keeps={*ours, sink},
        name="memdiag-output",
    )
    for descriptor in ours:
        os.close(descriptor)
    return Outlet(
        streams=streams,
        theirs=theirs,
        copies=tuple(copy for copy, _ in pipes),
        is_terminal=is_terminal,
        requests=requests,
        answers=answers,
        pid=pid,
    )


def _pseudo_terminal(like: int) -> tuple[int, int]:
    """A pseudo-terminal with the size and modes of `like`, but without output processing, which the
    real terminal does.
    """
    ours, theirs = os.openpty()
    with contextlib.suppress(termios.error):
        modes = termios.tcgetattr(like)
        modes[1] &= ~termios.OPOST
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
    _copy_size(like, ours)
    return ours, theirs


def _modes(terminal: int) -> list[Any] | None:
    """The modes of a terminal; None for anything else."""
    try:
        return termios.tcgetattr(terminal)
    except termios.error:
        return None


def _copy_size(terminal: int, to: int) -> bool:
    """Copy the window size. Returns True if it has changed."""
    try:
        wanted = fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(_SIZE.size))
        if fcntl.ioctl(to, termios.TIOCGWINSZ, bytes(_SIZE.size)) == wanted:
            return False
        fcntl.ioctl(to, termios.TIOCSWINSZ, wanted)
    except OSError:
        return False
    return True


def _widen(pipe: int) -> None:
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _ask(outlet: Outlet, request: bytes) -> None:
    with contextlib.suppress(OSError):  # it has ended, or its pipe is full
        os.write(outlet.requests, request)


def _answers(outlet: Outlet) -> bytes:
    try:
        return os.read(outlet.answers, 4096)
    except OSError:
        return b""


def _answered(outlet: Outlet, request: bytes, timeout_s: float = 0.05) -> bool:
    """Return True if it has done what was asked, or has ended."""
    with selectors.DefaultSelector() as ready:
        ready.register(outlet.answers, selectors.EVENT_READ)
        if not ready.select(timeout_s):
            return False
    answer = _answers(outlet)
    return not answer or request in answer


class Pump:
    """The process that passes one stream on."""

    def __init__(
        self,
        *,
        source: int,
        sink: int,
        tees: Sequence[int],
        requests: int,
        answers: int,
        is_held: bool = False,
    ) -> None:
        self._source, self._sink = source, sink
        self._requests, self._answers = requests, answers
        self._spills = tuple(Spill(tee) for tee in tees)
        for tee in tees:
            os.set_blocking(tee, False)
        self._backlog = Backlog() if is_held else None
        self._is_open = True
        self._modes = _modes(source)

    def run(self) -> None:
        """Run until all writers have closed the stream, or no reader is left."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._source, selectors.EVENT_READ)
            ready.register(self._requests, selectors.EVENT_READ)
            while self._is_open or self._backlog is not None:
                waits = 0.02 if any(spill.waiting for spill in self._spills) else None
                found = {key.fd for key, _ in ready.select(waits)}
                if self._source in found:
                    self._is_open = self._pass_on()
                    if not self._is_open:
                        ready.unregister(self._source)
                elif self._requests in found and not self._answer():
                    ready.unregister(self._requests)  # memdiag has exited, the target has not
                    if self._backlog is not None:
                        time.sleep(_RESTORED_S)
                        self._release()
                for spill in self._spills:
                    spill.flush()

    def _pass_on(self) -> bool:
        try:
            data = os.read(self._source, _AT_A_TIME)
        except OSError:  # all users of the pseudo-terminal have closed it
            data = b""
        now_s = time.monotonic()
        if not data:
            return False
        self._follow_modes()
        if self._backlog is not None:
            self._backlog.add(data)
        elif not write_all(self._sink, data):
            return False
        for spill in self._spills:
            spill.add(now_s, data)
        return True

    def _follow_modes(self) -> None:
        """Give the terminal the modes that a full-screen program has set on the pseudo-terminal, as
        it did before it wrote.
        """
        modes = _modes(self._source)
        if self._backlog is not None or modes == self._modes or modes is None:
            return
        self._modes = modes
        with contextlib.suppress(termios.error):
            processed = termios.tcgetattr(self._sink)[1]
            termios.tcsetattr(self._sink, termios.TCSANOW, [modes[0], processed, *modes[2:]])

    def _answer(self) -> bool:
        try:
            requests = os.read(self._requests, 64)
            for request in (requests[i : i + 1] for i in range(len(requests))):
                if request == _HOLD:
                    self._backlog = self._backlog or Backlog()
                elif request == _RELEASE:
                    self._release()
                is_same = request == _RESIZE and not _copy_size(self._sink, self._source)
                os.write(self._answers, _UNCHANGED if is_same else request)
        except OSError:
            return False
        return bool(requests)

    def _release(self) -> None:
        backlog, self._backlog = self._backlog, None
        self._follow_modes()
        if backlog is not None and not backlog.write_to(self._sink):
            self._is_open = False


class Backlog:
    """Output that waits for the terminal: the last of it, in two files without names."""

    def __init__(self, most_bytes: int = _BACKLOG_BYTES) -> None:
        self._most_each = most_bytes // 2
        self._files: list[IO[bytes]] = []
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Append output; the oldest is dropped, and all if there is no room on the disk."""
        try:
            if not self._files or self._files[-1].tell() >= self._most_each:
                self._files.append(tempfile.TemporaryFile(buffering=0))  # noqa: SIM115
            if len(self._files) > 2:
                with self._files.pop(0) as oldest:
                    self._dropped += oldest.tell()
            self._files[-1].write(data)
        except OSError:
            self._dropped += len(data)

    def write_to(self, sink: int) -> bool:
        """Write what was kept. Returns False if the reader is gone."""
        if self._dropped:
            note = f"memdiag: {self._dropped} bytes of earlier output are not shown\r\n"
            write_all(sink, note.encode())
        for file in self._files:
            with file:
                file.seek(0)
                while data := file.read(_AT_A_TIME):
                    if not write_all(sink, data):
                        return False
        self._files.clear()
        return True


class Spill:
    """Writes the copy to a pipe that may be full. Buffers up to a limit, then drops."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._frames: deque[memoryview] = deque()
        self._held = 0
        self._dropped = 0
        self._is_dead = False

    @property
    def waiting(self) -> bool:
        """Return True if there is data to write."""
        return bool(self._frames)

    def add(self, at_s: float, data: bytes) -> None:
        """Add a piece."""
        if self._is_dead or self._held > _SPILL_BYTES:
            self._dropped += len(data)
            return
        self._frames.append(memoryview(FRAME.pack(at_s, self._dropped, len(data)) + data))
        self._held += len(data)
        self._dropped = 0

    def flush(self) -> None:
        """Write as much as fits into the pipe."""
        try:
            while self._frames:
                frame = self._frames.popleft()
                written = 0
                with contextlib.suppress(BlockingIOError):
                    written = os.write(self._pipe, frame)
                self._held = max(0, self._held - written)
                if written < len(frame):
                    self._frames.appendleft(frame[written:])
                    return
        except OSError:  # the reader of the copy has ended
            self._is_dead = True
            self._frames.clear()


class FrameReader:
    """Splits the bytes of a copy into its pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[float, int, bytes]]:
        """(time, bytes dropped before it, data) of each complete piece."""
        self._rest += data
        while len(self._rest) >= FRAME.size:
            at_s, dropped, length = FRAME.unpack_from(self._rest)
            if len(self._rest) < FRAME.size + length:
                return
            piece = self._rest[FRAME.size : FRAME.size + length]
            self._rest = self._rest[FRAME.size + length :]
            yield at_s, dropped, piece


def write_all(descriptor: int, data: bytes) -> bool:
    """Write all data, waiting if necessary. Returns False if the reader is gone."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # another user of the stream has made it non-blocking
            with selectors.DefaultSelector() as ready:
                ready.register(descriptor, selectors.EVENT_WRITE)
                ready.select()
        except OSError:
            return False
    return True
