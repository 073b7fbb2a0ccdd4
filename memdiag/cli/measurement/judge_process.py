"""Work whose failure must not become ours: done in a child process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from memdiag.cli.output.messages import STDERR, say, unfailing

_PR_SET_PDEATHSIG = 1
# The thread pool of polars does not survive a fork: who has loaded it would wait forever.
_NOT_FORKED = "polars"
# A recording has at most some 50 MB: more threads would take longer to start than they save, and
# where no more may be started some of them wait for the others forever (measured: ulimit -u 16).
_THREADS = ("POLARS_MAX_THREADS", "2")


def apart(work: Callable[[], int], *, patience_s: float) -> int | None:
    """What `work` returns, 0..255, done in a child process; None where the child did not answer.

    A library may end its process where memory or threads are wanting (Rust aborts, OpenBLAS exits
    with 1), or wait forever, which no `except` sees. Where the child cannot be made, or where that
    would not be safe, the work is done here. Raises KeyboardInterrupt.

    patience_s: how long the child may take.
    """
    if _NOT_FORKED in sys.modules or not hasattr(os, "fork"):
        return work()
    answers, tell = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        child = os.fork()
    except OSError:
        os.close(answers)
        os.close(tell)
        return work()
    if child == 0:
        _answer(work, tell)
    os.close(tell)
    answer = b""
    try:
        ready, _, _ = select.select([answers], [], [], patience_s)
        answer = os.read(answers, 1) if ready else b""
    finally:
        os.close(answers)
        if not answer:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
    return answer[0] if answer else None


def _answer(work: Callable[[], int], tell: int) -> None:
    """The life of the child; never returns. It ends with its parent, in whatever way that does."""
    try:
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.environ.setdefault(*_THREADS)
        _silence_libraries()
        code = work()
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(tell, bytes((code,)))
    except KeyboardInterrupt:
        pass  # the parent has got it as well
    except BaseException as error:
        say(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        sys.stderr.flush()
    finally:
        os._exit(0)


def _silence_libraries() -> None:
    """What libraries print before they abort is not ours to say: stderr is for our own lines."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr.fileno() == STDERR:
            if os.isatty(STDERR):  # rich asks the standard streams alone
                size = os.get_terminal_size(STDERR)
                os.environ.update(COLUMNS=str(size.columns), LINES=str(size.lines))
            sys.stderr = unfailing(os.dup(STDERR), sys.stderr.encoding)
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), STDERR)
