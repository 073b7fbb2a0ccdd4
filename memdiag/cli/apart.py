"""Work whose failure must not become ours: done in a child process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable

from memdiag.cli.conclude import say

_PR_SET_PDEATHSIG = 1
# The thread pool of polars does not survive a fork: who has loaded it would wait forever.
_NOT_FORKED = "polars"


def apart(work: Callable[[], int]) -> int | None:
    """What `work` returns, 0..255, done in a child process; None where the child did not answer.

    A library may end its process where memory or threads are wanting (Rust aborts, OpenBLAS exits
    with 1), which no `except` sees. Where the child cannot be made, or where that would not be
    safe, the work is done here. Raises KeyboardInterrupt.
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
    try:
        answer = os.read(answers, 1)
    except KeyboardInterrupt:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
        raise
    finally:
        os.close(answers)
        with contextlib.suppress(ChildProcessError):  # an adopted orphan's collector was faster
            os.waitpid(child, 0)
    return answer[0] if answer else None


def _answer(work: Callable[[], int], tell: int) -> None:
    """The life of the child; never returns. It ends with its parent, in whatever way that does."""
    try:
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        code = work()
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(tell, bytes((code,)))
    except KeyboardInterrupt:
        pass  # the parent has got it as well
    except BaseException as error:
        say(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
    finally:
        os._exit(0)
