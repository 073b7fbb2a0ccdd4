"""Frameworks that are not installed, with the part of their interface that the probe looks at.

`torch` is written to a directory for a program to import; the others are plain objects.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

MIB = 1 << 20

# As torch 2.13 has it: `memory_stats_as_nested_dict` of one device, and its error for no memory.
_TORCH = """
class Tensor: pass
optim = None
class OutOfMemoryError(RuntimeError): pass
class _C:
    observers = []
    def _cuda_attach_out_of_memory_observer(observer):
        assert cuda.held, "asked before the program used the device"
        _C.observers.append(observer)
    def _cuda_isHistoryEnabled():
        return bool(_Memory.recorded)
class _Memory:
    recorded = None
    traces = []
    def _record_memory_history(enabled="all", stacks="all", max_entries=0):
        assert cuda.held, "asked before the program used the device"
        _Memory.recorded = enabled and (enabled, stacks, max_entries)
    def _snapshot():
        return {"segments": [], "device_traces": [_Memory.traces]}
class _Cuda:
    MIB = 1 << 20
    memory = _Memory
    def __init__(self):
        self.held = []
        self.calls = self.ooms = 0
    def is_initialized(self):
        return bool(self.held)
    def device_count(self):
        assert self.held, "asked before the program used the device"
        return 1
    def memory_stats_as_nested_dict(self, device):
        assert self.held, "asked before the program used the device"
        self.calls += 1
        used = sum(self.held) * self.MIB
        now = lambda value: {"all": {"current": value, "peak": value}}
        return {
            "allocated_bytes": now(used),
            "reserved_bytes": now(used + 20 * self.MIB),
            "active_bytes": now(used),
            "inactive_split_bytes": now(3 * self.MIB),
            "allocation": now(len(self.held)),
            "num_alloc_retries": 2,
            "num_ooms": self.ooms,
        }
    def allocate(self, mib):
        if _Memory.recorded:
            _Memory.traces.append({
                "action": "alloc" if sum(self.held) + mib <= 400 else "oom",
                "addr": len(self.held) << 30, "size": mib * self.MIB, "stream": 0,
                "time_us": len(self.held) * 1_000_000, "frames": [],
            })
        if sum(self.held) + mib > 400:
            self.ooms += 1
            for observer in _C.observers:
                observer(0, mib * self.MIB, 400 * self.MIB, 0)
            raise OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {mib}.00 MiB. GPU 0 has a total "
                "capacity of 400.00 MiB of which 0.00 MiB is free. Including non-PyTorch memory, "
                "this process has 400.00 MiB memory in use."
            )
        self.held.append(mib)
cuda = _Cuda()
"""


def write_torch(directory: Path) -> None:
    """A module `torch` whose device holds 400 MiB."""
    directory.mkdir(exist_ok=True)
    (directory / "torch.py").write_text(_TORCH)


class Caching:
    """`torch.cuda` or `torch.xpu` with devices that hold so many MiB each; -1: never used."""

    def __init__(self, *held: int) -> None:
        self.held = list(held)
        self.asked: list[int] = []
        self.initialized = True

    def is_initialized(self) -> bool:
        return self.initialized

    def device_count(self) -> int:
        assert self.initialized
        return len(self.held)

    def memory_stats_as_nested_dict(self, device: int) -> dict[str, object]:
        assert self.initialized
        self.asked.append(device)
        used = self.held[device] * MIB

        def now(value: int) -> dict[str, dict[str, int]]:
            return {"all": {"current": value, "peak": value}, "small_pool": {"current": 0}}

        return {
            "allocated_bytes": now(used),
            "reserved_bytes": now(2 * used),
            "active_bytes": now(used + bool(used) * MIB),
            "inactive_split_bytes": now(used // 2),
            "allocation": now(7 * bool(used)),
            "num_alloc_retries": 1 * bool(used),
            "num_ooms": 0,
        }


def jax(*in_use: int | None, arrays: int = 3) -> SimpleNamespace:
    """A module `jax` with a device for each figure in MiB; None: a CPU, which has none."""

    def device(mib: int | None) -> SimpleNamespace:
        stats = None if mib is None else {"bytes_in_use": mib * MIB, "pool_bytes": 2 * mib * MIB}
        return SimpleNamespace(memory_stats=lambda: stats)

    devices = [device(mib) for mib in in_use]
    live = [SimpleNamespace(nbytes=MIB)] * arrays
    return SimpleNamespace(live_arrays=lambda: live, local_devices=lambda: devices)


def tensorflow(*in_use: int) -> SimpleNamespace:
    """A module `tensorflow` with a GPU for each figure in MiB."""
    used = {f"GPU:{n}": mib * MIB for n, mib in enumerate(in_use)}
    experimental = SimpleNamespace(get_memory_info=lambda gpu: {"current": used[gpu], "peak": 0})
    gpus = [SimpleNamespace(name=f"/device:{gpu}") for gpu in used]
    config = SimpleNamespace(experimental=experimental, list_logical_devices=lambda _: gpus)
    return SimpleNamespace(config=config)
