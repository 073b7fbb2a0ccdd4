"""The device memory of a process tree, read in a thread of its own.

A call of the driver can hang for seconds, fail permanently during a run, or lose one of several
GPUs. So a daemon thread reads the driver at its own rate, and the sampler takes the latest finished
reading: it never waits and gets no exception.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import psutil

from memdiag.capture.gpu.cuda_visible_devices import Visible, visible
from memdiag.capture.gpu.nvml import Device, Driver, Nvml, Reading, connect
from memdiag.capture.gpu.process_memory import (
    DEVICE_DELTA,
    IDLE,
    NEW_ROW,
    NVML_ROW,
    GpuView,
    Place,
    TreeMemory,
)
from memdiag.capture.process.cgroup import PROC
from memdiag.capture.process.sampler import Readings
from memdiag.capture.process.tree import TREE, Process, ProcessId
from memdiag.values.measurements import Limit, Missing, Role, Unavailable

_BASELINE_WAIT_S = 1.0  # how long a launch waits for the first reading (heuristic)
_RETRY_S = 10.0  # between attempts to reach a lost driver or GPU (heuristic)
_STALE_S = 2.0  # an older reading is not used (heuristic; at least 5 intervals)
_ASK_WHY_S = 1.0  # between checks for the reason of a missing reading (heuristic)
# The reader pauses a quarter of a second, twice that while no value changes, or 200 times the
# processor time and 20 times the wall time of its last reading: at most 0.5% of a core, and 5% of
# the driver's lock, which the target needs too (heuristic; a reading of 2 GPUs takes 0.3 ms of a
# core, benchmarks/gpu_sampling).
_SHORTEST_REST_S, _LONGEST_REST_S = 0.25, 5.0
_REST_PER_CPU, _REST_PER_WALL = 200.0, 20.0
_REST_UNCHANGED = 2.0
_HOST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO, include/linux/proc_ns.h
DRIVER_FILES = ("/dev/nvidia-uvm", "/dev/dxg")  # CUDA opens these, NVML alone does not

_DEVICE_ROLES = frozenset({Role.DEVICE, Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED})
_LABELS = {
    NVML_ROW: "NVML's values for the target's processes",
    NEW_ROW: "the only process in NVML's list that appeared since launch",
    DEVICE_DELTA: "the devices' memory beyond the baseline, including other users of the devices",
}


class GpuSource:
    """A `Source` that reads NVML in a thread of its own.

    Call `start` before the launch, `read` at every tick, and `close`. Only `start` blocks.
    """

    def __init__(
        self,
        *,
        interval_s: float,
        environ: Mapping[str, str],
        place: Place | None = None,
        rest_s: float = _SHORTEST_REST_S,
        retry_s: float = _RETRY_S,
        stale_s: float = _STALE_S,
    ) -> None:
        """interval_s: of the sampling. environ: the target's environment.

        rest_s: shortest pause between two readings, if longer than the interval. retry_s: between
        attempts to reach a lost driver or GPU. stale_s: without an answer of the driver for this
        long, there is a reason instead of a reading.
        """
        self._interval_s = max(interval_s, rest_s)
        self._shortest_rest_s = rest_s
        self._retry_s = retry_s
        self._stale_s = stale_s
        self._environ = dict(environ)
        self._place = place or this_place()
        self._stop = threading.Event()
        self._first = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memdiag-nvml", daemon=True)
        # Written by the reader, each with one assignment; read by the sampler.
        self._finished: Reading | None = None
        self._driver: Driver | None = None
        self._why_not = Unavailable(reason="NVML has not answered yet")
        self._is_calling = False
        self._rest_s = 0.0
        self._retry_at_s = 0.0
        # Used by the sampler only.
        self._started_at_s = 0.0
        self._tree_memory: TreeMemory | None = None
        self._hidden: Unavailable | None = None
        self._ids: dict[int, ProcessId] = {}
        self._handed_out: Reading | None = None
        self._seen_at_s = 0.0
        self._ask_why_at_s = 0.0
        self._sources: list[str] = []
        self._why_missing: dict[str, Unavailable] = {}
        self._devices: tuple[Device, ...] = ()
        self._late_s: float | None = None

    def start(self, *, wait_s: float = _BASELINE_WAIT_S) -> None:
        """Read the baseline, for at most `wait_s` seconds. Call this just before the launch."""
        self._started_at_s = time.monotonic()
        self._thread.start()
        self._first.wait(wait_s)
        if self._finished is not None:
            self._take_baseline(self._finished)

    def read(self, processes: Sequence[Process]) -> Readings:
        """The tree's device memory: each finished reading once, nothing in between.

        A process without device memory has no entry. TREE has the total, or the reason why it is
        missing, or neither if the target has no device memory.
        """
        now_s = time.monotonic()
        if self._finished is self._handed_out and now_s < self._ask_why_at_s:
            return {}  # the result at most ticks
        self._ask_why_at_s = now_s + _ASK_WHY_S
        ids = {process.id.pid: process.id for process in processes}
        if self._tree_memory is not None:
            gone = (pid for pid, seen in self._ids.items() if ids.get(pid) != seen)
            self._tree_memory.forget(gone)
        self._ids = ids
        view = self.latest(ids)
        if view is None:
            return {}
        tree: dict[str, int | Unavailable] = {**view.tree}
        if view.missing is not None and self._is_worth_reporting(view.missing):
            tree[NVML_ROW] = view.missing
        return {TREE: tree, **{ids[pid]: readings for pid, readings in view.by_pid.items()}}

    def latest(self, pids: Collection[int]) -> GpuView | None:
        """The tree's device memory by a new reading; None if there is none.

        Each reading is returned once, so that no value is repeated as if it were measured again.
        If the driver has not answered for seconds, the view has only the reason.
        """
        reading = self._unseen()
        if reading is None:
            return self._silent()
        self._handed_out, self._seen_at_s = reading, reading.at_s
        if self._tree_memory is None and self._hidden is None:
            self._late_s = reading.at_s - self._started_at_s
            self._take_baseline(reading)
        return self._noted(self._view(reading, pids))

    def close(self) -> None:
        """Stop the reader. If it hangs in the driver, its daemon thread is abandoned."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=0.5)

    def missing(self) -> tuple[Missing, ...]:
        """The reasons why the tree's `vram_bytes` was missing, in order of occurrence.

        Nothing is missing if the target has no device memory, or the machine no device.
        """
        reasons = list(self._why_missing.values())
        if not reasons and self._tree_memory is None and self._place.has_driver:
            reasons = [self._why_not]
        return tuple(Missing(metric=NVML_ROW, process="tree", why=why) for why in reasons)

    def limits(self) -> tuple[Limit, ...]:
        """The limit of each device for the target: allocatable memory minus that of others.

        If the tree uses several devices, each has a metric of its own, which its limit is for.
        """
        tree = self._tree_memory
        if tree is None:
            return ()
        devices = tree.used or self._devices
        return tuple(
            Limit(
                name=f"{device.label} ({device.name})",
                value_bytes=max(0, device.total_bytes - tree.others.get(device.uuid, 0)),
                roles=_DEVICE_ROLES,
                metric=device.column if len(devices) > 1 else "",
            )
            for device in devices
            if not isinstance(device.total_bytes, Unavailable)
        )

    def notes(self) -> tuple[str, ...]:
        """Notes on the values, one sentence each."""
        notes = [f"{metric} is {_LABELS[metric]}" for metric in self._sources if metric != NVML_ROW]
        if notes and self._late_s is not None:
            notes.append(
                f"the driver's first answer came {self._late_s:.1f} s after the start: what the "
                "target had allocated by then is not in these values"
            )
        return tuple(notes)

    def about(self) -> dict[str, object]:
        """Driver, devices and the source of each metric, for the recording's sidecar."""
        driver = self._driver
        if driver is None:
            return {}
        about: dict[str, object] = {
            "driver": driver.version,
            "cuda": driver.cuda,
            "devices": [{"label": d.label, "name": d.name, "uuid": d.uuid} for d in self._devices],
            "sources": {metric: _LABELS[metric] for metric in self._sources},
        }
        if self._late_s is not None:
            about["baseline_late_s"] = round(self._late_s, 3)
        return about

    # called by the sampler -----------------------------------------------------------------------

    def _unseen(self) -> Reading | None:
        return None if self._finished is self._handed_out else self._finished

    def _take_baseline(self, reading: Reading) -> None:
        assert self._driver is not None
        seen = visible(self._environ, [usage.device for usage in reading.usages])
        if isinstance(seen, Unavailable):
            self._hidden = seen
            seen = Visible(devices=(), ordered=True)
        self._devices = seen.devices
        self._tree_memory = TreeMemory(
            place=self._place, visible=seen, driver=self._driver, baseline=reading
        )

    def _view(self, reading: Reading, pids: Collection[int]) -> GpuView:
        assert self._tree_memory is not None
        view = self._tree_memory.see(reading, pids)
        if self._hidden is not None and not view.by_pid:
            return GpuView(taken_at_s=view.taken_at_s, missing=self._hidden)
        return view

    def _silent(self) -> GpuView | None:
        """Without a new reading: None, or the reason if there will be none or it is late."""
        now = time.monotonic()
        waited_s = now - (self._seen_at_s or self._started_at_s)
        patience_s = max(self._stale_s, 5 * self._interval_s, 2 * self._rest_s)
        if self._thread.is_alive() and waited_s < patience_s:
            return None
        why = self._why_not
        if self._is_calling:
            why = Unavailable(
                reason=f"the NVIDIA driver has not responded for over {patience_s:.0f} s",
                remedy="check dmesg for Xid errors and nvidia-smi for hanging processes",
            )
        return self._noted(GpuView(taken_at_s=now, missing=why))

    def _noted(self, view: GpuView) -> GpuView:
        if view.missing is not None and self._is_worth_reporting(view.missing):
            self._why_missing.setdefault(view.missing.reason, view.missing)
        self._sources += [m for m in view.tree if m in _LABELS and m not in self._sources]
        return view

    def _is_worth_reporting(self, why: Unavailable) -> bool:
        """Return False on a machine without a device, or if the target uses none."""
        return why is not IDLE and (self._driver is not None or self._place.has_driver)

    # called by the reader's thread -----------------------------------------------------------

    def _run(self) -> None:
        """Read until stopped, or until it is known that there is no driver."""
        nvml: Nvml | None = None
        try:
            while not self._stop.is_set():
                nvml = self._connection(nvml)
                if nvml is None and self._driver is None:
                    return
                self._rest_s = (
                    min(self._retry_s, _LONGEST_REST_S) if nvml is None else self._read(nvml)
                )
                self._stop.wait(self._rest_s)
        except Exception as error:  # a bug in the bindings must not end the run
            self._why_not = Unavailable(reason=f"reading NVML failed: {error!r}")
        finally:
            self._is_calling = False
            self._first.set()
            if nvml is not None:
                nvml.close()

    def _connection(self, nvml: Nvml | None) -> Nvml | None:
        """The connection. Made again regularly while the driver or one of its GPUs is lost."""
        if nvml is not None and not _has_lost(self._finished):
            return nvml
        now = time.monotonic()
        if now < self._retry_at_s:
            return nvml
        self._retry_at_s = now + self._retry_s
        if nvml is not None:
            nvml.close()
        self._is_calling = True
        fresh = connect()
        self._is_calling = False
        if isinstance(fresh, Unavailable):
            self._why_not = fresh
            return None
        self._driver = fresh.driver
        return fresh

    def _read(self, nvml: Nvml) -> float:
        """Read once; returns the length of the pause after it."""
        self._is_calling = True
        wall_s, cpu_s = time.monotonic(), time.thread_time()
        before, self._finished = self._finished, nvml.read()
        wall_s, cpu_s = time.monotonic() - wall_s, time.thread_time() - cpu_s
        self._is_calling = False
        self._first.set()
        is_same = before is not None and before.usages == self._finished.usages
        rest_s = max(cpu_s * _REST_PER_CPU, wall_s * _REST_PER_WALL)
        shortest_s = self._shortest_rest_s * (_REST_UNCHANGED if is_same else 1.0)
        return max(self._interval_s, shortest_s, min(rest_s, _LONGEST_REST_S))


def this_place() -> Place:
    """The facts about memdiag's own namespace."""
    return Place(
        own_pids=is_host_namespace(),
        has_driver=any(Path(path).exists() for path in ("/dev/nvidiactl", *DRIVER_FILES)),
        is_running=psutil.pid_exists,
        has_opened=has_opened,
    )


def has_opened(pid: int) -> bool | None:
    """Return True if a process has opened CUDA's device file; None if unknown."""
    try:
        files = (PROC / str(pid) / "fd").iterdir()
        return any(_target_of(file).startswith(DRIVER_FILES) for file in files)
    except OSError:
        return None


def _target_of(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def is_host_namespace(*, proc: Path = PROC) -> bool:
    """Return True if NVML's pids are valid here. Kernels without namespaces do not report one."""
    namespace = _target_of(proc / "self" / "ns" / "pid")
    return namespace in {"", _HOST_PID_NAMESPACE}


def _has_lost(reading: Reading | None) -> bool:
    """Return True if neither the memory nor the processes of a device can be read."""
    return reading is not None and any(
        isinstance(usage.used_bytes, Unavailable) and isinstance(usage.rows, Unavailable)
        for usage in reading.usages
    )
