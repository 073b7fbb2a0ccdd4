"""The probe as a guest in a process that memdiag did not start: it comes on request, and leaves.

It leaves by itself, within a second, when its watcher ends in whatever way: see
`memdiag.probe.watcher_lock`.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from memdiag.capture.probelink import channel
from memdiag.capture.probelink.inject import Injected, RemoteExec, inject
from memdiag.capture.probelink.ptrace_permission import refuse_forbidden, refuse_unfit, user_of
from memdiag.capture.probelink.workspace import PROBE, Workspace

# The main thread may be inside of a long call (a collective, a sleep): the recording does not
# wait for it. Chosen.
_ARRIVAL_S = 2.0


class Visit:
    """A channel of its own for a running process and its future children. Enter it to attach.

    injected: how the probe was let in. arrived: it was there within two seconds.
    """

    def __init__(self, pid: int, *, remote_exec: RemoteExec | None = None) -> None:
        self._pid = pid
        self._remote_exec = remote_exec
        self._stack = ExitStack()
        self.directory = Path()
        self.injected: Injected | None = None
        self.arrived = False

    def __enter__(self) -> Visit:
        """Raises CannotWatch where the probe cannot be let in, CannotMeasure for want of room."""
        user = user_of(self._pid)
        refuse_forbidden(self._pid, user)
        refuse_unfit(self._pid, PROBE)
        with ExitStack() as stack:
            workspace = stack.enter_context(Workspace(user))
            self.directory = workspace.rings
            self.injected = inject(self._pid, user, workspace, remote_exec=self._remote_exec)
            self._stack = stack.pop_all()
        self.arrived = self._arrives()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._stack.close()

    def note(self) -> str:
        """What was done to the process, for the recording."""
        injected = self.injected
        if injected is None:
            return ""
        stopped = ""
        if injected.stopped_s is not None:
            stopped = f", which stopped the process for {injected.stopped_s * 1e3:.0f} ms"
        return f"the probe was let in by {injected.way}{stopped}; it leaves with memdiag"

    def _arrives(self) -> bool:
        until_s = time.monotonic() + _ARRIVAL_S
        while time.monotonic() < until_s:
            if channel.find_ring(self.directory, self._pid) is not None:
                return True
            time.sleep(0.005)
        return False
