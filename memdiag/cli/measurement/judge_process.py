"""Runs work whose failure must not end memdiag in a child process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from memdiag.cli.output.messages import STDERR, say, unfailing

JUDGING = "memdiag-judging"
"""The name of threads that judge during the measurement."""
_PATIENCE_S = 30.0  # for such a thread: heuristic
_PR_SET_PDEATHSIG = 1
# Linux, include/linux/posix-timers.h: CPUCLOCK_SCHED; the number of a process's clock holds its id.
_CPU_CLOCK = 2
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

    patience_s: how much CPU time the child may take, and how long it may take none.
    """
    is_alone = _is_alone()
    if not is_alone or _NOT_FORKED in sys.modules or not hasattr(os, "fork"):
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
        answer = os.read(answers, 1) if _is_answered(answers, child, patience_s) else b""
    finally:
        os.close(answers)
        if not answer:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
    return answer[0] if answer else None


def _is_alone() -> bool:
    """Return True once no thread judges any more: a child would inherit the locks of its imports,
    and wait for them forever.
    """
    judging = [one for one in threading.enumerate() if one.name == JUDGING]
    for thread in judging:
        thread.join(_PATIENCE_S)
    return not any(thread.is_alive() for thread in judging)


def _is_answered(answers: int, child: int, patience_s: float) -> bool:
    """Wait while the child computes, however long a busy machine takes for that."""
    before_s, used_s = -1.0, 0.0
    while before_s < used_s < patience_s:
        if select.select([answers], [], [], patience_s)[0]:
            return True
        before_s, used_s = used_s, _cpu_s(child)
    return False


def _cpu_s(pid: int) -> float:
    """CPU time of a child; 0 where the system cannot tell."""
    try:
        return time.clock_gettime(~pid << 3 | _CPU_CLOCK)
    except (AttributeError, OSError):
        return 0.0


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
