"""Runs work whose failure must not end memdiag in a child process."""

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
# The thread pool of polars does not survive a fork: the child would wait forever.
_NOT_FORKED = "polars"
# A recording has at most about 50 MB: more threads would take longer to start than they save, and
# if no more can be started, some wait for the others forever (measured: ulimit -u 16).
_THREADS = ("POLARS_MAX_THREADS", "2")


def apart(work: Callable[[], int], *, patience_s: float) -> int | None:
    """What `work` returns in a child process, 0..255; None if the child did not answer.

    When memory or threads run out, a library may end its process (Rust aborts, OpenBLAS exits with
    1) or wait forever, which `except` cannot catch. The work is done in this process if a child
    cannot be created, or would not be safe. Raises KeyboardInterrupt.

    patience_s: how long the child may take.
    """
    if _NOT_FORKED in sys.modules or not hasattr(os, "fork"):
        return work()
    answers, reply = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        child = os.fork()
    except OSError:
        os.close(answers)
        os.close(reply)
        return work()
    if child == 0:
        _answer(work, reply)
    os.close(reply)
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


def _answer(work: Callable[[], int], reply: int) -> None:
    """Runs in the child and never returns. The child ends with its parent, however that ends."""
    try:
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.environ.setdefault(*_THREADS)
        _silence_libraries()
        code = work()
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(reply, bytes((code,)))
    except KeyboardInterrupt:
        pass  # the parent receives it as well
    except BaseException as error:
        say(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        sys.stderr.flush()
    finally:
        os._exit(0)


def _silence_libraries() -> None:
    """Hide what libraries print before they abort: stderr is for memdiag's own lines."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr.fileno() == STDERR:
            if os.isatty(STDERR):  # rich looks at the standard streams only
                size = os.get_terminal_size(STDERR)
                os.environ.update(COLUMNS=str(size.columns), LINES=str(size.lines))
            sys.stderr = unfailing(os.dup(STDERR), sys.stderr.encoding)
            with Path(os.devnull).open("wb") as nowhere:
                os.dup2(nowhere.fileno(), STDERR)
