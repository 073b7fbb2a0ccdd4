"""Finds the device memory of a process tree in NVML's tables, from the best available source.

1. The framework's own allocator, read inside the target, not here.
2. NVML's rows of the tree's processes                       -> `vram_bytes`, per process
3. the only row that appeared since launch, if NVML has the
   pids of another namespace (a container, an older driver)  -> `vram_new_row_bytes`, tree
4. the memory of the target's devices beyond the baseline,
   including that of others                                  -> `vram_device_delta_bytes`, tree
5. none, with the reason and a remedy.

Each source has its own metric, so that no analysis mixes two. Sources 3 and 4 require evidence that
the tree uses a GPU (it has opened the driver's device file): on a shared GPU they would otherwise
show the memory of others as the target's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from memdiag.capture.gpu.cuda_visible_devices import Visible
from memdiag.capture.gpu.nvml import Device, Driver, Reading, Usage
from memdiag.values.measurements import Unavailable

NVML_ROW = "vram_bytes"
NEW_ROW = "vram_new_row_bytes"
DEVICE_DELTA = "vram_device_delta_bytes"

# Since this driver version the process list has the pids of the caller's namespace, before it those
# of the host (NVIDIA/open-gpu-kernel-modules: os_find_ns_pid).
_PIDS_TRANSLATED = (535, 113)
# From opening the driver's file to a row in the list. A CUDA context takes less than one second
# (heuristic).
_PATIENCE_S = 5.0

IDLE = Unavailable(reason="no process of the target has GPU memory")
_NO_ROW = Unavailable(
    reason="NVML lists no process of the target: its container does not share the host's pids",
    remedy="start the container with --pid=host (Kubernetes: hostPID: true), or update the "
    "driver to 565.57 or later",
)
_NO_VALUE = Unavailable(
    reason="NVML lists the target's process without its memory (WSL2, Windows, MIG, or a "
    "container on a driver before 565.57)",
    remedy="share the host's pids (--pid=host) or update the driver; WSL2 does not support it, "
    "use the framework's allocator",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuView:
    """A tree's device memory at one moment.

    taken_at_s: monotonic seconds at which the driver was read.
    by_pid: pid -> metric -> bytes. tree: metric -> bytes of the whole tree.
    missing: why `vram_bytes` is not in `tree`; None if it is.
    """

    taken_at_s: float
    by_pid: dict[int, dict[str, int]] = field(default_factory=dict)
    tree: dict[str, int] = field(default_factory=dict)
    missing: Unavailable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Facts about memdiag's environment that decide what NVML's rows mean.

    own_pids: this process is in the host's pid namespace, so NVML's pids are valid here.
    has_driver: there is a device file, so that memory of a device may be in use.
    is_running: whether a pid exists here.
    has_opened: whether a process has the driver's device file open; None if unknown.
    """

    own_pids: bool
    has_driver: bool
    is_running: Callable[[int], bool]
    has_opened: Callable[[int], bool | None]


class TreeMemory:
    """Finds the memory of one tree in each reading, using the baseline and earlier readings.

    others: device's uuid -> bytes of other users of the device, by the latest reading.
    """

    def __init__(
        self, *, place: Place, visible: Visible, driver: Driver, baseline: Reading
    ) -> None:
        self._place = place
        self._visible = {device.uuid: device for device in visible.devices}
        self._baseline = {usage.device.uuid: usage for usage in baseline.usages}
        version = driver.major_minor
        self._host_rows = not place.own_pids and version is not None and version < _PIDS_TRANSLATED
        self._held: dict[int, set[str]] = {}
        self._new_pids: set[int] = set()
        self._opened: set[int] = set()
        self._opened_at_s: float | None = None
        self._devices: dict[str, Device] = {}
        # Whether the tree was seen before it used a device. If not (watch, a slow driver), its row
        # may be in the baseline, and a new row belongs to another process.
        self._came_first: bool | None = None
        self.has_rows = False
        self.others: dict[str, int] = {}

    @property
    def used(self) -> tuple[Device, ...]:
        """The devices that the tree has used, by NVML's rows."""
        return tuple(self._devices.values())

    def see(self, reading: Reading, pids: Collection[int]) -> GpuView:
        """The tree `pids` in one reading."""
        if not self._host_rows:
            view = self._own_rows(reading, pids)
            if view is not None:
                return view
        return self._without_rows(reading, pids)

    def forget(self, pids: Iterable[int]) -> None:
        """Drop processes that have ended, because their pids may be reused."""
        for pid in pids:
            self._held.pop(pid, None)
            self._opened.discard(pid)

    # source 2 -----------------------------------------------------------------------------------

    def _own_rows(self, reading: Reading, pids: Collection[int]) -> GpuView | None:
        """The tree's memory by NVML's rows; None if it has no rows."""
        mine = _rows_of(reading, pids)
        for pid, rows in mine.items():
            self._held.setdefault(pid, set()).update(rows)
        by_pid: dict[int, dict[str, int]] = {}
        missing: Unavailable | None = None
        failures = _failures(reading, set().union(*self._held.values()))
        for pid, held in self._held.items():
            failed = tuple(failures[uuid] for uuid in held & failures.keys()) if failures else ()
            total = _total(mine.get(pid, {}), failed)
            if isinstance(total, Unavailable):
                missing = total
            elif total is not None:
                by_pid[pid] = {NVML_ROW: total}
        self.has_rows = self.has_rows or bool(by_pid)
        if not self.has_rows:
            return None
        if missing is None and not by_pid:
            missing = IDLE
        tree = {} if missing is not None else self._tree(reading, mine, by_pid)
        return GpuView(taken_at_s=reading.at_s, by_pid=by_pid, tree=tree, missing=missing)

    def _tree(
        self,
        reading: Reading,
        mine: dict[int, dict[str, int | None]],
        by_pid: dict[int, dict[str, int]],
    ) -> dict[str, int]:
        """The tree's total and, once it uses several devices, its memory on each of them."""
        tree = {NVML_ROW: sum(readings[NVML_ROW] for readings in by_pid.values())}
        held: dict[str, int] = {}
        for rows in mine.values():
            for uuid, used in rows.items():
                held[uuid] = held.get(uuid, 0) + (used or 0)
        for usage in reading.usages:
            uuid = usage.device.uuid
            if uuid not in held:
                continue
            self._devices.setdefault(uuid, usage.device)  # the column of a device stays
            if isinstance(usage.used_bytes, int):
                self.others[uuid] = max(0, usage.used_bytes - held[uuid])
        if len(self._devices) > 1:
            tree |= {self._devices[uuid].column: used for uuid, used in held.items()}
        return tree

    # sources 3 to 5 -----------------------------------------------------------------------------

    def _without_rows(self, reading: Reading, pids: Collection[int]) -> GpuView:
        if self._came_first is None and pids:
            self._came_first = all(self._place.has_opened(pid) is False for pid in pids)
        self._note_new_rows(reading)
        why = self._why_no_rows(reading, pids)
        if why is IDLE or not self._is_in_use(reading, pids, at_once=why not in _TRANSIENT):
            return GpuView(taken_at_s=reading.at_s, missing=IDLE if why is _NO_ROW else why)
        values: dict[str, int] = {}
        if why is _NO_ROW and self._came_first and len(self._new_pids) == 1:
            values = self._sole_new_row(reading)
        if not values:
            values = self._device_delta(reading)
        return GpuView(taken_at_s=reading.at_s, tree=values, missing=why)

    def _why_no_rows(self, reading: Reading, pids: Collection[int]) -> Unavailable:
        if not self._host_rows and _rows_of(reading, pids):
            return _NO_VALUE
        seen = [usage for usage in reading.usages if usage.device.uuid in self._visible]
        failed = [usage.rows for usage in seen if isinstance(usage.rows, Unavailable)]
        if seen and len(failed) == len(seen):
            return failed[0]
        return IDLE if self._place.own_pids else _NO_ROW

    def _is_in_use(self, reading: Reading, pids: Collection[int], *, at_once: bool) -> bool:
        """Return True if the tree has used a GPU for long enough to have a row."""
        for pid in pids:
            if pid not in self._opened and self._place.has_opened(pid) is not False:
                self._opened.add(pid)
        if not self._opened:
            self._opened_at_s = None
            return False
        if self._opened_at_s is None:
            self._opened_at_s = reading.at_s
        return at_once or reading.at_s - self._opened_at_s >= _PATIENCE_S

    def _note_new_rows(self, reading: Reading) -> None:
        for usage in reading.usages:
            before = self._baseline.get(usage.device.uuid)
            if before is None or isinstance(usage.rows, Unavailable):
                continue
            known = set() if isinstance(before.rows, Unavailable) else _pids(before)
            new = _pids(usage) - known
            if not self._host_rows:  # the pid of a process that runs here is not that of the target
                new = {pid for pid in new if not self._place.is_running(pid)}
            self._new_pids |= new

    def _sole_new_row(self, reading: Reading) -> dict[str, int]:
        total = _total(_rows_of(reading, self._new_pids).get(min(self._new_pids), {}), ())
        return {NEW_ROW: total} if isinstance(total, int) else {}

    def _device_delta(self, reading: Reading) -> dict[str, int]:
        """Growth of the target's devices since the baseline; empty if one cannot be read."""
        delta = 0
        now = {usage.device.uuid: usage for usage in reading.usages}
        for uuid in self._visible:
            if uuid not in now or uuid not in self._baseline:
                return {}
            used, before = now[uuid].used_bytes, self._baseline[uuid].used_bytes
            if isinstance(used, Unavailable) or isinstance(before, Unavailable):
                return {}
            delta += used - before
        return {DEVICE_DELTA: delta}


_LOST = Unavailable(
    reason="a GPU that the target uses is lost",
    remedy="check dmesg for Xid errors; reset the GPU or reboot",
)
_TRANSIENT = (_NO_ROW, _NO_VALUE)  # also true for a moment while a context is created


def _pids(usage: Usage) -> set[int]:
    return set() if isinstance(usage.rows, Unavailable) else {row.pid for row in usage.rows}


def _rows_of(reading: Reading, pids: Collection[int]) -> dict[int, dict[str, int | None]]:
    """pid -> device's uuid -> bytes, None if unknown.

    A CUDA context takes some hundred megabytes: 0 bytes means unknown in drivers 535.113 to 565.56
    inside a container.
    """
    found: dict[int, dict[str, int | None]] = {}
    for usage in reading.usages:
        if isinstance(usage.rows, Unavailable):
            continue
        for row in usage.rows:
            if row.pid in pids:
                found.setdefault(row.pid, {})[usage.device.uuid] = row.used_bytes or None
    return found


def _failures(reading: Reading, uuids: Collection[str]) -> dict[str, Unavailable]:
    """Why devices that the tree has used cannot be read now."""
    now = {usage.device.uuid: usage.rows for usage in reading.usages}
    rows = {uuid: now.get(uuid, _LOST) for uuid in uuids}
    return {uuid: why for uuid, why in rows.items() if isinstance(why, Unavailable)}


def _total(
    rows: dict[str, int | None], failures: tuple[Unavailable, ...]
) -> int | Unavailable | None:
    """A process's sum over its devices; None if it uses none, never a partial sum."""
    if failures:
        return failures[0]
    values = [used for used in rows.values() if used is not None]
    if len(values) < len(rows):
        return _NO_VALUE
    return sum(values) if values else None
