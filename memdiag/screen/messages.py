"""What memdiag and the process of its screen send each other, as whole messages of a socket.

Both are memdiag's own processes, so the messages are pickled.
"""

from __future__ import annotations

import enum
import errno
import pickle
import signal
import socket
from collections import deque
from dataclasses import dataclass

from memdiag.values.findings import Finding
from memdiag.values.measurements import Limit, Sample

_MOST_WAITING = 256  # messages that wait for a slow screen; the oldest are dropped. Heuristic.
# A frame is sent each time that the run has become longer by this part, within these limits.
NEWS, _SOON_S, _SELDOM_S = 0.02, 0.25, 1.0
_LARGEST = 1 << 18  # bytes of a message: more than the socket takes


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is measured, and how it may be shown.

    title: the command or process. is_ours: memdiag has started it. can_stop: a shell would continue
    it after Ctrl-Z. directory: for pictures.
    """

    title: str
    is_ours: bool
    can_stop: bool
    ascii_only: bool
    directory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What is new since the last one.

    elapsed_s: since the recording began. found: the finding that decides so far; None before there
    is any. series: findings of single series that have changed. cpu_s: what memdiag has used since
    the recording began. missed_ticks: how many samples were late. is_whole: the samples and the
    findings of series of this frame were sent before it.
    """

    samples: tuple[Sample, ...] = ()
    elapsed_s: float = 0.0
    found: Finding | None = None
    series: tuple[Finding, ...] = ()
    limits: tuple[Limit, ...] = ()
    cpu_s: float = 0.0
    missed_ticks: int = 0
    is_whole: bool = False


class Order(enum.Enum):
    """What memdiag asks of the screen."""

    SHOW = "show"
    LEAVE = "leave"


class WishKind(enum.Enum):
    """What the screen asks of memdiag."""

    SIGNAL = "signal"  # a key that sends a signal to the job
    LEAVE = "leave"  # leave the screen, go on recording
    END = "end"  # end the job, or the watch
    MARK = "mark"  # note this moment
    GONE = "gone"  # the terminal is restored


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """signal: of SIGNAL. failure: why the screen ended by itself. cpu_s: what the screen used."""

    kind: WishKind
    signal: signal.Signals | None = None
    failure: str = ""
    cpu_s: float = 0.0


def frame_every_s(elapsed_s: float) -> float:
    """Seconds until the next frame of a run that has lasted for so long."""
    return min(_SELDOM_S, max(_SOON_S, NEWS * elapsed_s))


def pair() -> tuple[Link, Link]:
    """The two ends. Raises OSError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Link(ours), Link(theirs)


class Link:
    """One end. Sending never waits: what the other side has not taken is kept, up to a limit."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._waiting: deque[bytes] = deque(maxlen=_MOST_WAITING)
        self.is_closed = False

    def fileno(self) -> int:
        """Its descriptor."""
        return self._end.fileno()

    def send(self, message: Frame | Order | Wish) -> None:
        """Send a message, or keep it until the next call."""
        self._waiting.append(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
        self.flush()

    @property
    def waiting(self) -> int:
        """How many messages the other side has not taken yet."""
        return len(self._waiting)

    def flush(self) -> None:
        """Send what was kept, as far as the other side takes it."""
        while self._waiting and not self.is_closed:
            try:
                self._end.send(self._waiting[0], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return
            except OSError as error:
                self.is_closed = error.errno != errno.EMSGSIZE
            self._waiting.popleft()

    def receive(self, *, waits: bool = False) -> Frame | Order | Wish | None:
        """The next message; None if there is none, or if the other end `is_closed`."""
        try:
            data = self._end.recv(_LARGEST, 0 if waits else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            self.is_closed = True
            return None
        message: Frame | Order | Wish = pickle.loads(data)
        return message

    def close(self) -> None:
        """Close it; the other end notices."""
        self.is_closed = True
        self._end.close()
