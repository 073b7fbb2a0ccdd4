"""From NVML's tables to the memory of one process tree, by the best source there is.

1. The framework's own allocator: comes from inside the target, not from here.
2. NVML's rows of the tree's processes                       -> `vram_bytes`, per process
3. the sole row that appeared since launch, where NVML's pids
   are not ours (a container on an older driver)             -> `vram_new_row_bytes`, tree
4. what the target's devices hold beyond the baseline, other
   tenants included                                          -> `vram_device_delta_bytes`, tree
5. nothing, with the reason and what to do about it.

Each source has its own metric, so that no fit ever mixes two. Rungs 3 and 4 need evidence that
the tree uses a GPU at all (it has opened the driver's device file): on a shared card they would
otherwise show a stranger's memory as the target's.
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

# Own pids first appear in the kernel module's process list with this driver; before it a
# container sees the host's (NVIDIA/open-gpu-kernel-modules: os_find_ns_pid).
_PIDS_TRANSLATED = (535, 113)
# Seconds from opening the driver's file to a row of one's own: a CUDA context follows in less
# than one (chosen).
_PATIENCE_S = 5.0

IDLE = Unavailable(reason="no process of the target holds GPU memory")
_NO_ROW = Unavailable(
    reason="NVML lists no process of the target: its container does not share the host's pids",
    remedy="start the container with --pid=host (Kubernetes: hostPID: true), or update the "
    "driver to 565.57 or later",
)
_NO_FIGURE = Unavailable(
    reason="NVML lists the target's process without its memory (WSL2, Windows, MIG, or a "
    "container on a driver before 565.57)",
    remedy="share the host's pids (--pid=host) or update the driver; under WSL2 there is no way, "
    "use what the framework's allocator says",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuView:
    """A tree's device memory at one moment.

    taken_at_s: monotonic seconds at which the driver was read.
    by_pid: pid -> metric -> bytes. tree: metric -> bytes of the whole tree.
    missing: why `vram_bytes` is not in `tree`; None where it is.
    """

    taken_at_s: float
    by_pid: dict[int, dict[str, int]] = field(default_factory=dict)
    tree: dict[str, int] = field(default_factory=dict)
    missing: Unavailable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Facts about where memdiag runs that decide what NVML's rows mean.

    own_pids: this process is in the host's pid namespace, so NVML's pids are its own.
    has_driver: there is a device file, so that memory of a device may be in use.
    is_running: whether a pid exists here.
    has_opened: whether a process has the driver's device file open; None where that can't be seen.
    """

    own_pids: bool
    has_driver: bool
    is_running: Callable[[int], bool]
    has_opened: Callable[[int], bool | None]


class Ladder:
    """Follows one tree through the readings; remembers the baseline and who held what.

    others: device's uuid -> bytes that other tenants hold there, by the latest reading.
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
        # Whether the tree was seen before it used a device. If not (watch, a driver slow to
        # answer), its row may be in the baseline, and a new one is somebody else's.
        self._came_first: bool | None = None
        self.has_rows = False
        self.others: dict[str, int] = {}

    @property
    def used(self) -> tuple[Device, ...]:
        """The devices that the tree has been on, by NVML's rows."""
        return tuple(self._devices.values())

    def see(self, reading: Reading, pids: Collection[int]) -> GpuView:
        """The tree `pids` in one reading."""
        if not self._host_rows:
            view = self._own_rows(reading, pids)
            if view is not None:
                return view
        return self._without_rows(reading, pids)

    def forget(self, pids: Iterable[int]) -> None:
        """These processes have ended; whoever gets their pids is somebody else."""
        for pid in pids:
            self._held.pop(pid, None)
            self._opened.discard(pid)

    # rung 2 -----------------------------------------------------------------------------------

    def _own_rows(self, reading: Reading, pids: Collection[int]) -> GpuView | None:
        """NVML's rows of the tree; None where there are none to go by."""
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
        """The tree's total and, once it is on several devices, its part of each of them."""
        tree = {NVML_ROW: sum(readings[NVML_ROW] for readings in by_pid.values())}
        held: dict[str, int] = {}
        for rows in mine.values():
            for uuid, used in rows.items():
                held[uuid] = held.get(uuid, 0) + (used or 0)
        for usage in reading.usages:
            uuid = usage.device.uuid
            if uuid not in held:
                continue
            self._devices.setdefault(uuid, usage.device)  # a name keeps to its card
            if isinstance(usage.used_bytes, int):
                self.others[uuid] = max(0, usage.used_bytes - held[uuid])
        if len(self._devices) > 1:
            tree |= {self._devices[uuid].column: used for uuid, used in held.items()}
        return tree

    # rungs 3 to 5 -----------------------------------------------------------------------------

    def _without_rows(self, reading: Reading, pids: Collection[int]) -> GpuView:
        if self._came_first is None and pids:
            self._came_first = all(self._place.has_opened(pid) is False for pid in pids)
        self._note_new_rows(reading)
        why = self._why_no_rows(reading, pids)
        if why is IDLE or not self._is_in_use(reading, pids, at_once=why not in _DOUBTFUL):
            return GpuView(taken_at_s=reading.at_s, missing=IDLE if why is _NO_ROW else why)
        figures: dict[str, int] = {}
        if why is _NO_ROW and self._came_first and len(self._new_pids) == 1:
            figures = self._sole_new_row(reading)
        if not figures:
            figures = self._device_delta(reading)
        return GpuView(taken_at_s=reading.at_s, tree=figures, missing=why)

    def _why_no_rows(self, reading: Reading, pids: Collection[int]) -> Unavailable:
        if not self._host_rows and _rows_of(reading, pids):
            return _NO_FIGURE
        seen = [usage for usage in reading.usages if usage.device.uuid in self._visible]
        failed = [usage.rows for usage in seen if isinstance(usage.rows, Unavailable)]
        if seen and len(failed) == len(seen):
            return failed[0]
        return IDLE if self._place.own_pids else _NO_ROW

    def _is_in_use(self, reading: Reading, pids: Collection[int], *, at_once: bool) -> bool:
        """Whether the tree uses a GPU, as far as can be told, long enough to have its row."""
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
            if not self._host_rows:  # a process that runs here under that pid is not the target
                new = {pid for pid in new if not self._place.is_running(pid)}
            self._new_pids |= new

    def _sole_new_row(self, reading: Reading) -> dict[str, int]:
        total = _total(_rows_of(reading, self._new_pids).get(min(self._new_pids), {}), ())
        return {NEW_ROW: total} if isinstance(total, int) else {}

    def _device_delta(self, reading: Reading) -> dict[str, int]:
        """Growth of the target's devices since the baseline; nothing where one can't be read."""
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
    reason="a GPU that the target uses is lost", remedy="see dmesg for Xid errors; reset or reboot"
)
_DOUBTFUL = (_NO_ROW, _NO_FIGURE)  # also seen for the moment in which a context is made


def _pids(usage: Usage) -> set[int]:
    return set() if isinstance(usage.rows, Unavailable) else {row.pid for row in usage.rows}


def _rows_of(reading: Reading, pids: Collection[int]) -> dict[int, dict[str, int | None]]:
    """pid -> device's uuid -> bytes, None where the driver gives no figure.

    A CUDA context takes some hundred megabytes: 0 bytes is how drivers 535.113 to 565.56 say
    inside a container that they don't know.
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
    """Why devices that processes have been on can't be read now."""
    now = {usage.device.uuid: usage.rows for usage in reading.usages}
    rows = {uuid: now.get(uuid, _LOST) for uuid in uuids}
    return {uuid: why for uuid, why in rows.items() if isinstance(why, Unavailable)}


def _total(
    rows: dict[str, int | None], failures: tuple[Unavailable, ...]
) -> int | Unavailable | None:
    """A process's sum over its devices: None where it is on none, never a part of the sum."""
    if failures:
        return failures[0]
    figures = [used for used in rows.values() if used is not None]
    if len(figures) < len(rows):
        return _NO_FIGURE
    return sum(figures) if figures else None
