"""Attaches the probe to a process that memdiag did not start, and detaches it.

The probe detaches by itself, within a second, when memdiag exits for any reason: see
`memdiag.probe.watcher_lock`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memdiag.capture.probelink import channel
from memdiag.capture.probelink.inject import Injected, RemoteExec, inject, line_of_python
from memdiag.capture.probelink.ptrace_permission import refuse_forbidden, refuse_unfit, user_of
from memdiag.capture.probelink.workspace import PROBE, workspace

# The main thread may be in a long call (a collective, a sleep): the recording does not wait longer.
# Heuristic.
_ARRIVAL_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedProbe:
    """The probe in a running process and its future children.

    directory: its channel. arrived: it was running within two seconds.
    """

    directory: Path
    injected: Injected
    arrived: bool

    def note(self) -> str:
        """What was done to the process, for the recording."""
        stopped = ""
        if self.injected.stopped_s is not None:
            stopped = f", which stopped the process for {self.injected.stopped_s * 1e3:.0f} ms"
        return f"the probe was attached by {self.injected.way}{stopped}; it detaches with memdiag"


@contextmanager
def attached_probe(pid: int, *, remote_exec: RemoteExec | None = None) -> Iterator[AttachedProbe]:
    """Attach the probe to process `pid` for the time of the context.

    Raises CannotWatch if it cannot be attached, CannotMeasure if its files cannot be made.
    """
    user = user_of(pid)
    refuse_forbidden(pid, user)
    refuse_unfit(pid, PROBE)
    with workspace(user) as files:
        injected = inject(pid, user, files, remote_exec=remote_exec)
        arrived = _arrives(files.rings, pid)
        yield AttachedProbe(directory=files.rings, injected=injected, arrived=arrived)


@contextmanager
def invited_probe(pid: int, execute: Callable[[str], None]) -> Iterator[Path]:
    """The channel of process `pid`, of this user, which loads the probe by itself.

    execute: have the process execute the script of this path. Needs no permission to trace it.
    Raises CannotMeasure if the files of the probe cannot be made.
    """
    with workspace(user_of(pid)) as files:
        line = line_of_python(files.probe / "enter_process.py", files.rings)
        execute(str(files.write_script(line)))
        _arrives(files.rings, pid)
        yield files.rings


def _arrives(directory: Path, pid: int) -> bool:
    until_s = time.monotonic() + _ARRIVAL_S
    while time.monotonic() < until_s:
        if channel.find_ring(directory, pid) is not None:
            return True
        time.sleep(0.005)
    return False
