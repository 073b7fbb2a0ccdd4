"""The foreground process group of the terminal: it gets the keys, and it alone may read them.

While memdiag's screen is in the foreground, the target is in the background. If it reads from the
terminal or changes its modes, the kernel stops it (SIGTTIN, SIGTTOU), as a shell's background job,
before it has done so. Then memdiag gives the terminal back and continues it.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path


def open_terminal() -> int:
    """A descriptor of the controlling terminal, to read and write. Raises OSError."""
    return os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)


def hand_over(terminal: int, group: int) -> bool:
    """Make `group` the foreground group, also from the background. False if it cannot be."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        os.tcsetpgrp(terminal, group)
    except OSError:
        return False
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return True


def is_orphaned() -> bool:
    """Return True if no shell would continue this process group after a stop.

    The kernel does not stop the members of such a group: in the background, they get an error
    instead (setpgid(2)). It is the case for the first process of a container or of `ssh HOST
    COMMAND`.
    """
    group, session = os.getpgrp(), os.getsid(0)
    pid = os.getppid()
    try:
        while os.getpgid(pid) == group:
            pid = _parent(pid)
        return os.getsid(pid) != session
    except (OSError, ValueError, IndexError):  # it is outside of this container
        return True


def _parent(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return int(fields[1])
