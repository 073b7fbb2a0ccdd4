"""Searches a log for tags while it is written. It runs in a process of its own, which can be ended
if a pattern of the user takes forever.

It reads copies of the target's output or follows a file, and sends the tags as lines of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memdiag.capture.launch.fork_helper import forked
from memdiag.capture.launch.output_tee import FrameReader
from memdiag.capture.logtags.known_loggers import LoggerLines
from memdiag.capture.logtags.match_patterns import LimitedSearch, Matcher, Tag
from memdiag.capture.logtags.patterns import TagKind, TagRequest
from memdiag.capture.logtags.tail_file import Follower, LineDecoder
from memdiag.capture.process.step_and_phase import Origin
from memdiag.errors import CannotMeasure
from memdiag.values.sanitize import printable

_LOOK_S = 0.05  # how often a file is read
_QUIET_S = 0.05  # no more data for this long: the end
_PATIENCE_S = 2.0  # the longest wait at the end for the remaining lines
_FINISH = b"f"
_DONE, _NOTE = "done", "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent(Tag):
    """A tag in a log. at_s: when it was written, on the clock of `time.monotonic()`."""

    at_s: float


class LogTags:
    """The tags of a log. Create it before any thread is started, because it forks."""

    def __init__(
        self, request: TagRequest, *, copies: Sequence[int] = (), from_tail: bool = False
    ) -> None:
        """copies: descriptors to read the target's output from, which are closed here.
        from_tail: take the current step and phase from the last lines of an existing file.
        """
        self.origin = Origin.LOG if request.patterns else Origin.LOGGER
        self.promises_steps = request.promises(TagKind.STEP)
        self._rest = b""
        self._notes: list[str] = []
        self._found: list[LogEvent] = []
        self._done = self._is_gone = False
        asked, self._requests = os.pipe()
        self._events, telling = os.pipe()
        os.set_blocking(self._events, False)
        path = None if request.file is None else request.file.absolute()
        follower = None if path is None else Follower(path)
        tagger = _Tagger(request, follower, copies, asked, telling, from_tail=from_tail)
        keeps = {asked, telling, *copies, *(follower.descriptors if follower else ())}
        try:
            self.pid = forked(tagger.run, keeps=keeps, name="memdiag-tags")
        except OSError as error:
            raise CannotMeasure(f"the search for tags did not start: {error.strerror}") from error
        finally:
            for descriptor in (asked, telling, *copies):
                os.close(descriptor)
            if follower is not None:
                follower.close()

    def drain(self) -> list[LogEvent]:
        """The tags since the last call, in the order of their lines. Never waits."""
        self._receive()
        events, self._found = self._found, []
        return events

    def _receive(self) -> None:
        data = b""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._events, 1 << 16):
                data += piece
            self._is_gone = True
        *lines, self._rest = (self._rest + data).split(b"\n")
        events = (self._event(json.loads(line)) for line in lines)
        self._found += [event for event in events if event is not None]

    def waiting(self) -> bool:
        """Return True if there are tags to drain."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._events, selectors.EVENT_READ)
            return not self._is_gone and bool(ready.select(0.0))

    def finish(self) -> None:
        """Search the rest, within a time limit; `drain` then returns the last tags."""
        with contextlib.suppress(OSError):
            os.write(self._requests, _FINISH)
        self._receive()
        until_s = time.monotonic() + _PATIENCE_S
        while not self._done and not self._is_gone and time.monotonic() < until_s:
            with selectors.DefaultSelector() as ready:
                ready.register(self._events, selectors.EVENT_READ)
                ready.select(_LOOK_S)
            self._receive()
        if not self._done:
            self._notes.append("the last lines of the log were not searched: it took too long")

    def notes(self) -> tuple[str, ...]:
        """Notes for the user, one sentence each; after `finish`."""
        return tuple(self._notes)

    def close(self) -> None:
        """Close the pipes; the process ends when it notices."""
        for descriptor in (self._requests, self._events):
            os.close(descriptor)

    def _event(self, message: list[Any]) -> LogEvent | None:
        what = message[0]
        if what == _DONE:
            self._done = True
            return None
        if what == _NOTE:
            self._notes.append(printable(message[1]))
            return None
        return LogEvent(at_s=message[1], kind=TagKind(what), name=message[2], value=message[3])


class _Tagger:
    """The process that searches for tags."""

    def __init__(
        self,
        request: TagRequest,
        follower: Follower | None,
        copies: Sequence[int],
        requests: int,
        events: int,
        *,
        from_tail: bool,
    ) -> None:
        self._request = request
        self._follower = follower
        self._copies = {copy: (FrameReader(), LineDecoder()) for copy in copies}
        self._file_lines = LineDecoder()
        self._requests, self._events = requests, events
        self._from_tail = from_tail
        self._parent = os.getpid()
        self._dropped = 0
        self._reader: Matcher | LoggerLines | None = None

    def run(self) -> None:
        """Run until memdiag has asked for the rest, or has exited."""
        search = LimitedSearch()
        patterns = self._request.patterns
        self._reader = Matcher(patterns, search) if patterns else LoggerLines(search)
        if self._from_tail and self._follower is not None:
            self._send_current(self._follower.before)
        with selectors.DefaultSelector() as ready:
            for descriptor in (*self._copies, self._requests):
                ready.register(descriptor, selectors.EVENT_READ)
            while self._turn(ready):
                pass
            self._finish(ready)

    def _turn(self, ready: selectors.BaseSelector) -> bool:
        waits = None if self._follower is None else _LOOK_S
        found = {key.fd for key, _ in ready.select(waits)}
        self._read(ready, found)
        return self._requests not in found

    def _read(self, ready: selectors.BaseSelector, found: set[int]) -> bool:
        """Search all available data. Returns True if there was any."""
        some = False
        for copy in found & self._copies.keys():
            data = os.read(copy, 1 << 20)
            some = True
            if not data:
                ready.unregister(copy)
            unframed, lines = self._copies[copy]
            for at_s, dropped, piece in unframed.feed(data):
                if dropped:
                    self._dropped += dropped
                    lines.forget()
                self._search(lines.feed(at_s, piece))
        if self._follower is not None:
            for piece in self._follower.read():
                some = True
                if piece:
                    self._search(self._file_lines.feed(time.monotonic(), piece))
                else:
                    self._search(self._file_lines.flush())
        return some

    def _finish(self, ready: selectors.BaseSelector) -> None:
        if os.read(self._requests, 1) != _FINISH:
            return
        ready.unregister(self._requests)
        while ready.get_map() or self._follower is not None:
            if not self._read(ready, {key.fd for key, _ in ready.select(_QUIET_S)}):
                break
        for lines in (*(lines for _, lines in self._copies.values()), self._file_lines):
            self._search(lines.flush())
        for note in self._notes():
            self._send(_NOTE, note)
        self._send(_DONE)

    def _notes(self) -> Iterator[str]:
        if self._follower is not None and not self._follower.seen:
            yield f"--tags-from {self._request.file}: the file never existed"
        elif self._reader is not None:
            yield from self._reader.notes()
        if self._dropped:
            yield (
                f"{self._dropped:,} bytes of output came faster than they could be searched: "
                "their tags are missing"
            )

    def _search(self, lines: Iterator[tuple[float, str]]) -> None:
        for at_s, line in lines:
            for tag in self._reader.tags(line) if self._reader is not None else ():
                self._send(tag.kind.value, at_s, tag.name, tag.value)

    def _send_current(self, before: bytes) -> None:
        """Send the last step and phase in a log's tail. The times of its counters are unknown."""
        last: dict[TagKind, Tag] = {}
        now_s = time.monotonic()
        for _, line in LineDecoder().feed(now_s, before):
            for tag in self._reader.tags(line) if self._reader is not None else ():
                last[tag.kind] = tag
        for kind in (TagKind.STEP, TagKind.PHASE):
            if kind in last:
                self._send(kind.value, now_s, last[kind].name, last[kind].value)

    def _send(self, *words: str | float) -> None:
        line = json.dumps(words).encode() + b"\n"
        while line:
            line = line[os.write(self._events, line) :]
        if words[0] == TagKind.PHASE.value and os.getppid() == self._parent:
            # Wake memdiag, so that it reads the memory at the boundary of the phase, and not at the
            # next tick. This signal has no other effect on it.
            os.kill(self._parent, signal.SIGCHLD)
