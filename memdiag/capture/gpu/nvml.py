"""Reads devices, their memory and their processes from NVIDIA's driver through NVML.

It uses nvidia-ml-py, which is imported when the first connection is made. Each failure is an
`Unavailable` with a reason and a remedy; no exception of the library leaves this module. Every call
can block for seconds (a busy driver, a GPU falling off the bus), so do not call it where time
matters.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from memdiag.capture.gpu.nvml_process_list import RowBuffer
from memdiag.values.measurements import Unavailable

_LISTS = ("Compute", "Graphics", "MPSCompute")
_MOST_PID = 4_194_304  # PID_MAX_LIMIT of 64-bit Linux (include/linux/threads.h)
_MEMORY_V2 = 0x02000028  # nvmlMemory_v2 of nvml.h: version 2, 40 bytes

_INVALID_ROWS = Unavailable(
    reason="the driver's process rows are invalid (it and the NVML bindings use different "
    "layouts, as drivers 535.43 to 535.85 do)",
    remedy="update the NVIDIA driver to 535.86 or later",
)
_OLD = Unavailable(
    reason="the NVIDIA driver is too old to list processes with their memory",
    remedy="update the NVIDIA driver to 450 or later",
)
# By NVML error code (nvml.h, nvmlReturn_t).
_WHY = {
    3: ("the device does not support it", ""),
    4: (
        "NVML denies permission",
        "run as a user who may read /dev/nvidia*; under MIG give the container its instances",
    ),
    9: ("the NVIDIA kernel driver is not loaded", "load it (modprobe nvidia) or reboot"),
    12: (
        "no NVIDIA driver library (libnvidia-ml.so.1) is found",
        "install the NVIDIA driver; in a container use the NVIDIA container toolkit (--gpus all)",
    ),
    13: ("the NVIDIA driver lacks the function", "update the NVIDIA driver"),
    15: ("the GPU is lost (fell off the bus)", "check dmesg for Xid errors; reset it or reboot"),
    16: ("the GPU needs a reset", "reset it (nvidia-smi --gpu-reset) or reboot"),
    17: ("the operating system blocks NVML", "allow access to /dev/nvidia* (cgroup, seccomp)"),
    18: (
        "the NVIDIA driver's library and kernel module have different versions",
        "reboot, or reload the kernel module, after the driver's update",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU, or one MIG instance of a GPU.

    index: NVML's number of the GPU. instance: number of the MIG instance on it, None for a GPU.
    total_bytes: allocatable memory: that of the GPU minus what the driver reserves.
    """

    index: int
    instance: int | None
    name: str
    uuid: str
    total_bytes: int | Unavailable
    mig: bool = False  # an instance, or a GPU in MIG mode without a visible instance

    @property
    def label(self) -> str:
        """`GPU 0`, `GPU 0 MIG 1`."""
        return f"GPU {self.index}" + ("" if self.instance is None else f" MIG {self.instance}")

    @property
    def column(self) -> str:
        """The metric of the tree's memory on this device: `gpu0_vram_bytes`."""
        instance = "" if self.instance is None else f"_mig{self.instance}"
        return f"gpu{self.index}{instance}_vram_bytes"


class Row(NamedTuple):
    """A process with memory on a device; `used_bytes` is None if the driver reports N/A."""

    pid: int
    used_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One device at one moment: the memory in use in all, and by process (one row per pid)."""

    device: Device
    used_bytes: int | Unavailable
    rows: tuple[Row, ...] | Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All devices at `at_s` (monotonic, the end of the reading)."""

    at_s: float
    usages: tuple[Usage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Versions as the driver reports them, "" if unknown."""

    version: str
    nvml: str
    cuda: str

    @property
    def major_minor(self) -> tuple[int, int] | None:
        """(535, 113) for `535.113.01`; None if the version cannot be parsed."""
        parts = self.version.split(".")
        if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
            return None
        return int(parts[0]), int(parts[1])


class _Refused(Exception):
    """An NVML call failed. `code` is NVML's, None if the bindings failed."""

    def __init__(self, code: int | None, text: str) -> None:
        super().__init__(text)
        self.code = code

    @property
    def why(self) -> Unavailable:
        reason, remedy = _WHY.get(self.code or 0, (f"NVML fails: {self}", ""))
        return Unavailable(reason=reason, remedy=remedy)


_FUNCTION_NOT_FOUND = 13
# An empty list of graphics or MPS processes is skipped in this many readings. This saves two thirds
# of the calls and their cost; a first such process is seen one to two seconds late.
_EMPTY_SKIPS = 5
_ABSENT_LIST = frozenset({3, _FUNCTION_NOT_FOUND})  # a GPU or driver without graphics or MPS


class Nvml:
    """A connection to the driver. Not thread-safe: use it in the thread that made it."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._failures = tuple(
            failure
            for name in ("NVMLError", "NVMLLibraryMismatchError")  # the second is not an NVMLError
            if (failure := getattr(library, name, None)) is not None
        )
        self._call("nvmlInit")
        self._lists = RowBuffer(library)
        self._handles: list[tuple[Device, Any]] = []
        self._rows_version = 3
        self._memory_version: dict[str, int] = {}
        self._absent: set[tuple[str, str]] = set()
        self._skipped: dict[tuple[str, str], int] = {}
        self.driver = Driver(
            version=self._text("nvmlSystemGetDriverVersion"),
            nvml=self._text("nvmlSystemGetNVMLVersion"),
            cuda=self._cuda(),
        )
        self.find_devices()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The reachable GPUs; a GPU in MIG mode is replaced by its instances."""
        return tuple(device for device, _ in self._handles)

    def find_devices(self) -> None:
        """Enumerate the devices: MIG instances change, handles of a lost GPU become invalid."""
        self._handles = []
        for index in range(self._call("nvmlDeviceGetCount")):
            try:
                handle = self._call("nvmlDeviceGetHandleByIndex", index)
            except _Refused as refused:
                self._handles.append((_lost(index, refused.why), None))
                continue
            self._handles += self._instances(index, handle) or [self._described(index, handle)]

    def read(self) -> Reading:
        """Read all devices; each failure is an `Unavailable` in the reading."""
        usages = tuple(self._usage(device, handle) for device, handle in self._handles)
        return Reading(at_s=time.monotonic(), usages=usages)

    def close(self) -> None:
        """Close the connection; a failure is ignored."""
        try:
            self._call("nvmlShutdown")
        except _Refused:
            return

    def _call(self, name: str, *arguments: Any) -> Any:
        return self._guarded(lambda: getattr(self._library, name)(*arguments))

    def _list(self, name: str, handle: Any) -> list[tuple[int, int | None]]:
        rows: list[tuple[int, int | None]] = self._guarded(lambda: self._lists.read(name, handle))
        return rows

    def _guarded(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except self._failures as error:
            raise _Refused(getattr(error, "value", None), str(error)) from error
        except (AttributeError, ValueError) as error:  # missing in the bindings; undecodable text
            raise _Refused(None, str(error)) from error

    def _text(self, name: str, *arguments: Any) -> str:
        try:
            return str(self._call(name, *arguments))
        except _Refused:
            return ""

    def _cuda(self) -> str:
        text = self._text("nvmlSystemGetCudaDriverVersion")
        return f"{int(text) // 1000}.{int(text) % 1000 // 10}" if text.isdigit() else ""

    def _mig_mode(self, handle: Any) -> bool:
        try:
            return bool(self._call("nvmlDeviceGetMigMode", handle)[0])
        except _Refused:
            return False

    def _instances(self, index: int, handle: Any) -> list[tuple[Device, Any]]:
        if not self._mig_mode(handle):
            return []
        found = []
        try:
            for instance in range(self._call("nvmlDeviceGetMaxMigDeviceCount", handle)):
                try:
                    mig = self._call("nvmlDeviceGetMigDeviceHandleByIndex", handle, instance)
                except _Refused:
                    continue  # no such instance, or not available in this container
                found.append(self._described(index, mig, instance))
        except _Refused:
            return found
        return found

    def _described(
        self, index: int, handle: Any, instance: int | None = None
    ) -> tuple[Device, Any]:
        uuid = self._text("nvmlDeviceGetUUID", handle) or f"index {index} {instance}"
        memory = self._memory(handle, uuid)
        device = Device(
            index=index,
            instance=instance,
            name=self._text("nvmlDeviceGetName", handle) or "unnamed GPU",
            uuid=uuid,
            total_bytes=memory if isinstance(memory, Unavailable) else memory[1],
            mig=instance is not None or self._mig_mode(handle),
        )
        return device, handle

    def _memory(self, handle: Any, uuid: str) -> tuple[int, int] | Unavailable:
        """(used, allocatable) bytes. One version of the call per device: they count differently."""
        try:
            if self._memory_version.get(uuid, 2) == 2:
                try:
                    memory = self._call("nvmlDeviceGetMemoryInfo", handle, _MEMORY_V2)
                    self._memory_version[uuid] = 2
                    return int(memory.used), int(memory.total - memory.reserved)
                except _Refused as refused:
                    if uuid in self._memory_version or not _is_unknown_call(refused):
                        raise
            self._memory_version[uuid] = 1
            memory = self._call("nvmlDeviceGetMemoryInfo", handle)
            return int(memory.used), int(memory.total)
        except _Refused as refused:
            return refused.why

    def _usage(self, device: Device, handle: Any) -> Usage:
        if handle is None:
            assert isinstance(device.total_bytes, Unavailable)
            return Usage(device=device, used_bytes=device.total_bytes, rows=device.total_bytes)
        memory = self._memory(handle, device.uuid)
        used = memory if isinstance(memory, Unavailable) else memory[0]
        return Usage(device=device, used_bytes=used, rows=self._rows(device, handle))

    def _rows(self, device: Device, handle: Any) -> tuple[Row, ...] | Unavailable:
        merged: dict[int, int | None] = {}
        try:
            for kind in _LISTS:
                for pid, used in self._listed(kind, device, handle):
                    if not _plausible(pid, used, device):
                        return _INVALID_ROWS
                    # A process in two lists has the same total in both: do not add them.
                    before = merged.get(pid)
                    merged[pid] = used if before is None or (used or 0) > before else before
        except _Refused as refused:
            return _OLD if refused.code == _FUNCTION_NOT_FOUND else refused.why
        return tuple(Row(pid=pid, used_bytes=used) for pid, used in sorted(merged.items()))

    def _listed(self, kind: str, device: Device, handle: Any) -> list[tuple[int, int | None]]:
        which = (device.uuid, kind)
        skipped = self._skipped.get(which, _EMPTY_SKIPS)
        if which in self._absent or skipped < _EMPTY_SKIPS:
            self._skipped[which] = skipped + 1
            return []
        try:
            rows = self._newest_list(kind, handle)
        except _Refused as refused:
            if kind == _LISTS[0] or refused.code not in _ABSENT_LIST:
                raise
            self._absent.add(which)
            return []
        if not rows and kind != _LISTS[0]:
            self._skipped[which] = 0
        return rows

    def _newest_list(self, kind: str, handle: Any) -> list[tuple[int, int | None]]:
        """The list from the newest call that the driver supports."""
        if self._rows_version == 3:
            try:
                return self._list(f"nvmlDeviceGet{kind}RunningProcesses_v3", handle)
            except _Refused as refused:
                if refused.code != _FUNCTION_NOT_FOUND or kind != _LISTS[0]:
                    raise
                self._rows_version = 2
        return self._list(f"nvmlDeviceGet{kind}RunningProcesses_v2", handle)


def connect() -> Nvml | Unavailable:
    """Load NVML and enumerate the devices; the reason and a remedy if that fails."""
    try:
        import pynvml
    except ImportError:
        return Unavailable(
            reason="nvidia-ml-py is not installed", remedy="pip install nvidia-ml-py"
        )
    if not hasattr(pynvml, "_nvmlGetFunctionPointer"):
        return Unavailable(
            reason="another package shadows nvidia-ml-py's module pynvml",
            remedy="pip uninstall pynvml nvidia-ml-py3; pip install --force-reinstall nvidia-ml-py",
        )
    try:
        nvml = Nvml(pynvml)
    except _Refused as refused:
        return refused.why
    if not nvml.devices:
        nvml.close()
        return Unavailable(
            reason="the NVIDIA driver reports no device for this user",
            remedy="start the container with its GPUs (--gpus all), or check nvidia-smi -L",
        )
    return nvml


def _is_unknown_call(refused: _Refused) -> bool:
    """Return True if a driver does not support version 2 of the memory call (before R510)."""
    return refused.code in {3, _FUNCTION_NOT_FOUND, 25, None}


def _plausible(pid: int, used: int | None, device: Device) -> bool:
    if pid in {0, 0xFFFFFFFF} or (sys.platform == "linux" and pid > _MOST_PID):
        return False
    total = device.total_bytes
    # Twice the size: it excludes the driver's own memory, and invalid values are far larger.
    return used is None or isinstance(total, Unavailable) or used <= 2 * total


def _lost(index: int, why: Unavailable) -> Device:
    return Device(
        index=index,
        instance=None,
        name="unreachable GPU",
        uuid=f"index {index} None",
        total_bytes=why,
    )
