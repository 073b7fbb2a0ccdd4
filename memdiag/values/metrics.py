"""What memdiag measures, and the columns of its recordings: one row per process and sample."""

from __future__ import annotations

from memdiag.values.measurements import Role

# Always present, in this order. `at_s` is in seconds since the recording began; `process` is "tree"
# in the rows with the totals of the process tree.
KEY_COLUMNS = ("at_s", "step", "phase", "pid", "process")

# The epoch that begins. It is not a reading, but its column is among them.
EPOCH_COLUMN = "epoch"

# Always present, empty if there is no reading. Further metrics and the user's counters follow in
# the order in which they first appear.
FIRST_METRICS = (
    "rss_bytes",
    "uss_bytes",
    "pss_bytes",
    "swap_bytes",
    "vram_bytes",
    "processes",
    "tensors",
)

# What is summed over the processes of a tree.
SUMMED = frozenset({"rss_bytes", "uss_bytes", "pss_bytes", "swap_bytes"})

# What memdiag measures. A column that is neither here nor in `column_meaning` is a user's counter.
METRIC_ROLES = {
    "rss_bytes": Role.RESIDENT,
    "uss_bytes": Role.UNIQUE,
    "pss_bytes": Role.PROPORTIONAL,
    "cgroup_anon_bytes": Role.PROPORTIONAL,
    "swap_bytes": Role.SWAP,
    "vram_bytes": Role.DEVICE,
    "vram_allocated_bytes": Role.DEVICE_ALLOCATED,
    "vram_reserved_bytes": Role.DEVICE_RESERVED,
    "vram_active_bytes": Role.DEVICE_ALLOCATED,
    "vram_inactive_split_bytes": Role.HOLES,
    "vram_allocations": Role.TENSORS,
    "vram_alloc_retries": Role.EVENTS,
    "vram_ooms": Role.EVENTS,
    "xpu_allocated_bytes": Role.DEVICE_ALLOCATED,
    "xpu_reserved_bytes": Role.DEVICE_RESERVED,
    "xpu_active_bytes": Role.DEVICE_ALLOCATED,
    "xpu_inactive_split_bytes": Role.HOLES,
    "xpu_allocations": Role.TENSORS,
    "xpu_alloc_retries": Role.EVENTS,
    "xpu_ooms": Role.EVENTS,
    "mps_allocated_bytes": Role.DEVICE_ALLOCATED,
    "mps_reserved_bytes": Role.DEVICE_RESERVED,
    "jax_allocated_bytes": Role.DEVICE_ALLOCATED,
    "jax_reserved_bytes": Role.DEVICE_RESERVED,
    "jax_arrays": Role.TENSORS,
    "jax_array_bytes": Role.IN_USE,
    "tensorflow_allocated_bytes": Role.DEVICE_ALLOCATED,
    "malloc_bytes": Role.IN_USE,
    "malloc_free_bytes": Role.HOLES,
    "tensor_bytes": Role.IN_USE,
    "processes": Role.PROCESSES,
    "tensors": Role.TENSORS,
    "tensors_cpu": Role.TENSORS,
    "tensors_cuda": Role.TENSORS,
    "tensors_other": Role.TENSORS,
    "python_blocks": Role.OBJECTS,
    "gc_objects": Role.OBJECTS,
    "gc_full_collections": Role.EVENTS,
    "gc_full_freed_objects": Role.EVENTS,
    "gc_young_freed_objects": Role.EVENTS,
    "gc_enabled": Role.EVENTS,
    "gc_unreachable_bytes": Role.HOLES,
    "gc_unreachable_device_bytes": Role.HOLES,
    "graph_nodes": Role.OBJECTS,
}


def is_native(names: tuple[str, ...]) -> bool:
    """Return True if the columns are those of a native recording."""
    return names[: len(KEY_COLUMNS)] == KEY_COLUMNS


def counts_bytes(name: str) -> bool:
    """Return True for "" (memory in general) and for metrics of memory: `rss`, `vram_bytes`."""
    return not name or f"{name.removesuffix('_bytes')}_bytes" in METRIC_ROLES
