"""Device memory of this process as the frameworks' allocators count it.

Only frameworks that the program has imported are read, and only once it uses a device, because an
earlier query would initialize it. Nothing here waits for a device.
"""

from __future__ import annotations

import sys
from time import monotonic

from .guard import ours
from .process_metrics import BudgetedMetric
from .ring_format import ABSENT, ALLOCATOR_READINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional

    Values = Dict[str, int]
    Reading = Callable[[], Optional[Values]]

# Names in torch's nested statistics.
_TORCH_BYTES = ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes")
_TORCH_EVENTS = {"alloc_retries": "num_alloc_retries", "ooms": "num_ooms"}
# Devices without memory in use are read once per this many readings: each rank of a job may see
# eight GPUs and use one.
_IDLE_EVERY = 64
# If no device is in use, steps check again after this time.
_IDLE_S = 0.25
# These report by themselves that they are unusable after a fork, and still work at the exit.
_ROBUST = ("vram", "xpu")


class ReadAt:
    """When the allocators are read: STEP, PHASE (its beginning or end), EXIT."""

    STEP, PHASE, EXIT = "step", "phase", "exit"


class Allocators:
    """All allocators of the process, each read within a budget of its own."""

    def __init__(self, note: Callable[[str, str], None]) -> None:
        """note: called with a reason and the metric that is missing for it."""
        self._note = note
        self._readers: dict[str, dict[str, Callable[[], Any]]] = {}
        self._idle_until_s = 0.0

    def add(self, name: str, read: Reading) -> None:
        """Call `read` from now on. name: one of `ring_format.ALLOCATORS`."""
        metric = BudgetedMetric(read, lambda text: self._note(text, _metric(name)))
        self._readers[name] = {
            ReadAt.STEP: metric.at_steps,
            ReadAt.PHASE: metric.at_phases,
            ReadAt.EXIT: read,
        }

    def after_fork_in_child(self) -> None:
        """In a forked child JAX and TensorFlow do not work; torch reports that itself."""
        for name in [name for name in self._readers if name not in _ROBUST]:
            del self._readers[name]

    def read(self, at: str) -> dict[str, Values]:
        """Name -> values of the allocators whose budget allows it. One that fails is dropped.

        at: a constant of `ReadAt`. At a phase and at the exit only torch's allocators are read, at
        the exit regardless of the budget.
        """
        found: dict[str, Values] = {}
        if at is ReadAt.STEP and monotonic() < self._idle_until_s:
            return found
        is_idle = True
        for name in tuple(self._readers) if at is ReadAt.STEP else _ROBUST:
            values = self._read_one(name, at)
            is_idle = is_idle and values is None
            if values is not None and values != ABSENT:
                found[name] = values
        if at is ReadAt.STEP and is_idle:
            self._idle_until_s = monotonic() + _IDLE_S
        return found

    def _read_one(self, name: str, at: str) -> Any:
        """Values, ABSENT if it is too early, None if there are none."""
        readers = self._readers.get(name)
        try:
            return None if readers is None else readers[at]()
        except ours(Exception):
            self._readers.pop(name, None)
            text = "reading the allocator failed in this version of the framework"
            self._note(text, _metric(name))
            return None


class TorchAllocator:
    """torch's caching allocator: `torch.cuda` (CUDA and ROCm) or `torch.xpu`, all devices."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._used: set[int] = set()
        self._reads = 0

    def __call__(self) -> Values | None:
        """Sums over the devices; None until the program uses one."""
        backend = self._backend
        if not backend.is_initialized():
            return None
        all_of_them = self._reads % _IDLE_EVERY == 0 or not self._used
        self._reads += 1
        totals: Values = {}
        for device in range(backend.device_count()) if all_of_them else tuple(self._used):
            values = _of_torch(backend.memory_stats_as_nested_dict(device))
            if values.get("reserved_bytes", 0) > 0:
                self._used.add(device)
            for name, value in values.items():
                totals[name] = totals.get(name, 0) + value
        return totals


def _metric(name: str) -> str:
    return f"{name}_allocated_bytes"


def _of_torch(stats: dict[str, Any]) -> Values:
    """The values of one device that this version of torch reports."""
    values = {}
    for name in _TORCH_BYTES:
        if name in stats:
            values[name] = int(stats[name]["all"]["current"])
    if "allocation" in stats:
        values["allocations"] = int(stats["allocation"]["all"]["current"])
    for name, theirs in _TORCH_EVENTS.items():
        if theirs in stats:
            values[name] = int(stats[theirs])
    return values


def metal(mps: Any, is_used: Callable[[], bool]) -> Reading:
    """torch.mps. `is_used` reports if it is in use, which torch does not."""

    def read() -> Values | None:
        if not is_used():
            return None
        return {
            "allocated_bytes": int(mps.current_allocated_memory()),
            "reserved_bytes": int(mps.driver_allocated_memory()),
        }

    return read


def jax(module: Any) -> Reading:
    """JAX's devices of the default backend, and its live arrays. JAX does not count the memory of a
    CPU: there the sizes of the arrays are summed.
    """

    def read() -> Values | None:
        bridge = sys.modules.get("jax._src.xla_bridge")
        if not getattr(bridge, "_backends", None):
            return None
        arrays = module.live_arrays()
        values: Values = {"arrays": len(arrays)}
        for device in module.local_devices():
            stats = device.memory_stats() or {}  # None on a CPU
            for name, theirs in (("allocated_bytes", "bytes_in_use"), ("reserved_bytes", _POOL)):
                if theirs in stats:
                    values[name] = values.get(name, 0) + int(stats[theirs])
        if "allocated_bytes" not in values:
            values["array_bytes"] = sum(array.nbytes for array in arrays)
        return values

    return read


_POOL = "pool_bytes"


def tensorflow(module: Any) -> Reading:
    """TensorFlow's GPUs."""

    def read() -> Values | None:
        eager = sys.modules.get("tensorflow.python.eager.context")
        context = getattr(eager, "_context", None)
        if context is None or not getattr(context, "_initialized", False):
            return None
        experimental = module.config.experimental
        gpus = [d.name.rpartition("device:")[2] for d in module.config.list_logical_devices("GPU")]
        if not gpus:
            return None
        used = sum(int(experimental.get_memory_info(gpu)["current"]) for gpu in gpus)
        return {"allocated_bytes": used}

    return read


def packed(values: Values) -> tuple[int, ...]:
    """The values in the order of a record."""
    return tuple(values.get(name, ABSENT) for name in ALLOCATOR_READINGS)
