"""Reads along with what the target writes to stdout and stderr, where an option asks for it.

Each stream of memdiag's that the target would have inherited is replaced by one of the same
nature, a pseudo-terminal for a terminal and a pipe for anything else, and one for both where both
lead to the same place, so that their order stays. A small process of its own passes every byte on
and copies it to whoever looks for tags. It never waits for those: what they are too slow for is
dropped there and counted, never here.

The target stays in memdiag's session and process group, and its stdin is untouched, so that job
control, Ctrl-C and end of file are the real terminal's. The pump lives on without memdiag for as
long as somebody holds the stream open.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import stat
import struct
import sys
import termios
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from memdiag.capture.launch.fork_helper import forked

_STREAMS = (1, 2)
_AT_A_TIME = 64 << 10
# What a copy may lag behind before parts of it are dropped. Chosen: seconds of a busy log.
_SPILL_BYTES = 8 << 20
_PIPE_BYTES = 1 << 20
_SIZE = struct.Struct("HHHH")
_DRAIN, _RESIZE, _UNCHANGED = b"d", b"w", b"-"
# Of each piece of the copy: when it came (monotonic), bytes that were dropped before, its length.
FRAME = struct.Struct("<dQQ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """One replaced stream. `streams`: the target's descriptors that lead to it. `theirs`: what the
    target gets for them. `copy`: where the copy is read.
    """

    streams: tuple[int, ...]
    theirs: int
    copy: int
    is_terminal: bool
    requests: int
    answers: int
    pid: int


class Outlets:
    """All replaced streams of one target. Make it before there is any thread."""

    def __init__(self) -> None:
        self._outlets = tuple(_outlet(streams) for streams in _places())
        self._is_started = False

    @property
    def streams(self) -> dict[int, int]:
        """The target's descriptor -> ours to put there."""
        return {s: outlet.theirs for outlet in self._outlets for s in outlet.streams}

    @property
    def copies(self) -> tuple[int, ...]:
        """Where the copies are read, as FRAMEs."""
        return tuple(outlet.copy for outlet in self._outlets)

    @property
    def pids(self) -> frozenset[int]:
        """The processes that pass the bytes on."""
        return frozenset(outlet.pid for outlet in self._outlets)

    def started(self) -> None:
        """The target has its descriptors: ours are closed, so that its end can be seen."""
        if not self._is_started:
            self._is_started = True
            for outlet in self._outlets:
                os.close(outlet.theirs)

    def follow_size(self) -> None:
        """The terminal's window may have changed: have it told to the pseudo-terminal."""
        for outlet in self._outlets:
            if outlet.is_terminal:
                _ask(outlet, _RESIZE)

    def resized(self) -> bool:
        """The pseudo-terminal has had another size since the last call. Never waits."""
        found = False
        for outlet in self._outlets:
            if outlet.is_terminal:
                found = _RESIZE in _answers(outlet) or found
        return found

    def drain(self, patience: Callable[[], bool]) -> None:
        """Wait until all that was written has been passed on, as long as `patience` says so."""
        for outlet in self._outlets:
            _ask(outlet, _DRAIN)
            while not _answered(outlet) and patience():
                pass

    def close(self) -> None:
        """Let go of it all. The streams live on for those who hold them."""
        self.started()
        for outlet in self._outlets:
            for descriptor in (outlet.requests, outlet.answers):
                os.close(descriptor)


def _places() -> list[tuple[int, ...]]:
    """The target's streams by where they lead; one that is closed is left so."""
    places: dict[tuple[int, int, int], tuple[int, ...]] = {}
    for stream in _STREAMS:
        with contextlib.suppress(OSError):
            found = os.fstat(stream)
            key = (found.st_dev, found.st_ino, found.st_rdev)
            # Two terminals may share a number in different mounts; their names tell.
            places[key] = (*places.get(key, ()), stream)
    return list(places.values())


def _outlet(streams: tuple[int, ...]) -> Outlet:
    sink = streams[0]
    is_terminal = stat.S_ISCHR(os.fstat(sink).st_mode) and os.isatty(sink)
    source, theirs = _pseudo_terminal(sink) if is_terminal else os.pipe()
    copy, tee = os.pipe()
    _widen(tee)
    asked, requests = os.pipe()
    answers, answering = os.pipe()
    os.set_blocking(requests, False)
    os.set_blocking(answers, False)
    ours = (source, tee, asked, answering)
    pid = forked(
        lambda: Pump(source=source, sink=sink, tee=tee, requests=asked, answers=answering).run(),
        keeps={*ours, sink},
        name="memdiag-output",
    )
    for descriptor in ours:
        os.close(descriptor)
    return Outlet(
        streams=streams,
        theirs=theirs,
        copy=copy,
        is_terminal=is_terminal,
        requests=requests,
        answers=answers,
        pid=pid,
    )


def _pseudo_terminal(like: int) -> tuple[int, int]:
    """A terminal with the modes and the size of the one at `like`, but that it leaves output as
    it is: the real one makes of it what it makes of it.
    """
    ours, theirs = os.openpty()
    with contextlib.suppress(termios.error):
        modes = termios.tcgetattr(like)
        modes[1] &= ~termios.OPOST
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
    _copy_size(like, ours)
    return ours, theirs


def _copy_size(terminal: int, to: int) -> bool:
    """Whether it was another one."""
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
    with contextlib.suppress(OSError):  # it has ended, or has enough requests to do
        os.write(outlet.requests, request)


def _answers(outlet: Outlet) -> bytes:
    try:
        return os.read(outlet.answers, 4096)
    except OSError:
        return b""


def _answered(outlet: Outlet, timeout_s: float = 0.05) -> bool:
    """It has passed everything on, or has ended."""
    with selectors.DefaultSelector() as ready:
        ready.register(outlet.answers, selectors.EVENT_READ)
        if not ready.select(timeout_s):
            return False
    answer = _answers(outlet)
    return not answer or _DRAIN in answer


class Pump:
    """The life of the process that passes one stream on."""

    def __init__(self, *, source: int, sink: int, tee: int, requests: int, answers: int) -> None:
        self._source, self._sink = source, sink
        self._requests, self._answers = requests, answers
        self._spill = Spill(tee)
        os.set_blocking(tee, False)

    def run(self) -> None:
        """Until everybody has closed the stream, or nobody reads it any more."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._source, selectors.EVENT_READ)
            ready.register(self._requests, selectors.EVENT_READ)
            while True:
                waits = 0.02 if self._spill.waiting else None
                found = {key.fd for key, _ in ready.select(waits)}
                if self._source in found:
                    if not self._pass_on():
                        return
                elif self._requests in found and not self._answer():
                    ready.unregister(self._requests)  # memdiag is gone; the target is not
                self._spill.flush()

    def _pass_on(self) -> bool:
        try:
            data = os.read(self._source, _AT_A_TIME)
        except OSError:  # a pseudo-terminal that nobody holds open any more
            data = b""
        now_s = time.monotonic()
        if not data or not write_all(self._sink, data):
            return False
        self._spill.add(now_s, data)
        return True

    def _answer(self) -> bool:
        try:
            requests = os.read(self._requests, 64)
            for request in (requests[i : i + 1] for i in range(len(requests))):
                is_same = request == _RESIZE and not _copy_size(self._sink, self._source)
                os.write(self._answers, _UNCHANGED if is_same else request)
        except OSError:
            return False
        return bool(requests)


class Spill:
    """The copy on its way to a pipe that may be full. Keeps some of it, and then drops."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._frames: deque[memoryview] = deque()
        self._held = 0
        self._dropped = 0
        self._is_dead = False

    @property
    def waiting(self) -> bool:
        """There is something to be written."""
        return bool(self._frames)

    def add(self, at_s: float, data: bytes) -> None:
        """Take one more piece."""
        if self._is_dead or self._held > _SPILL_BYTES:
            self._dropped += len(data)
            return
        self._frames.append(memoryview(FRAME.pack(at_s, self._dropped, len(data)) + data))
        self._held += len(data)
        self._dropped = 0

    def flush(self) -> None:
        """Write as much as the pipe takes."""
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
        except OSError:  # whoever looked for tags is gone
            self._is_dead = True
            self._frames.clear()


class Unframed:
    """The pieces of a copy, out of its bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[float, int, bytes]]:
        """When each complete piece came, how many bytes were dropped before it, and it."""
        self._rest += data
        while len(self._rest) >= FRAME.size:
            at_s, dropped, length = FRAME.unpack_from(self._rest)
            if len(self._rest) < FRAME.size + length:
                return
            piece = self._rest[FRAME.size : FRAME.size + length]
            self._rest = self._rest[FRAME.size + length :]
            yield at_s, dropped, piece


def write_all(descriptor: int, data: bytes) -> bool:
    """Write all of it, waiting where it must; False where it is taken no more."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # somebody made the stream non-blocking, for all who share it
            with selectors.DefaultSelector() as ready:
                ready.register(descriptor, selectors.EVENT_WRITE)
                ready.select()
        except OSError:
            return False
    return True
