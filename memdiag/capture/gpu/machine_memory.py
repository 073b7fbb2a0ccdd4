"""The memory of all GPUs of the machine, read in a thread of its own, since the driver may hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence

from memdiag.capture.gpu.nvml import Nvml, Reading, connect
from memdiag.capture.process.sampler import Readings
from memdiag.capture.process.tree import TREE, Process
from memdiag.values.measurements import Unavailable

_STALE_S = 10.0  # an older reading is not used: heuristic
_WAIT_S = 2.0


class MachineMemory:
    """Call `start`, read `latest`, and `close`. Without a driver there is never a reading."""

    def __init__(self, *, interval_s: float) -> None:
        self._interval_s = max(interval_s, 0.25)
        self._latest: Reading | None = None
        self._stop, self._first = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="memdiag-nvml", daemon=True)

    def start(self) -> None:
        """Wait a moment for the first reading."""
        self._thread.start()
        self._first.wait(_WAIT_S)

    def close(self) -> None:
        """Stop. A thread that hangs in the driver is abandoned."""
        self._stop.set()
        self._thread.join(timeout=0.5)

    def latest(self) -> Reading | None:
        """The latest reading; None if there is none, or only an old one."""
        reading = self._latest
        is_old = reading is not None and time.monotonic() - reading.at_s > _STALE_S
        return None if is_old else reading

    def pids(self) -> frozenset[int]:
        """The processes that use a GPU. In a container these may be pids of the host."""
        return frozenset(pid for used in self._by_pid().values() for pid in used)

    def of(self, pids: Collection[int]) -> dict[str, int]:
        """Bytes of these processes on each GPU that they use, by its label."""
        found = {}
        for label, used in self._by_pid().items():
            own = [size for pid, size in used.items() if pid in pids and size is not None]
            if own:
                found[label] = sum(own)
        return found

    def _by_pid(self) -> Mapping[str, Mapping[int, int | None]]:
        reading = self.latest()
        return {
            usage.device.label: {row.pid: row.used_bytes for row in usage.rows}
            for usage in (() if reading is None else reading.usages)
            if not isinstance(usage.rows, Unavailable)
        }

    def _run(self) -> None:
        nvml: Nvml | None = None
        try:
            found = connect()
            if isinstance(found, Unavailable):
                return
            nvml = found
            while not self._stop.is_set():
                self._latest = nvml.read()
                self._first.set()
                self._stop.wait(self._interval_s)
        finally:
            self._first.set()
            if nvml is not None:
                nvml.close()


class TreeShare:
    """A `Source`: what the processes of one tree have of the machine's GPUs."""

    def __init__(self, machine: MachineMemory) -> None:
        self._machine = machine
        self.by_gpu: dict[str, int] = {}

    def read(self, processes: Sequence[Process]) -> Readings:
        """Nothing for a tree without device memory."""
        self.by_gpu = self._machine.of({process.id.pid for process in processes})
        return {TREE: {"vram_bytes": sum(self.by_gpu.values())}} if self.by_gpu else {}
