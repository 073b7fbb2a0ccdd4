"""Names that people gave to columns, and what they meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdiag.recording.parsing.column_meaning import Part, as_metric, recognise
from memdiag.values.measurements import AxisKind, Role, Unit

MB, GB, MIB, GIB = 1e6, 1e9, 2.0**20, 2.0**30

# Columns of real logs: name, canonical metric, role, factor to bytes.
AMOUNTS = [
    ("rss_mb", "rss_bytes", Role.RESIDENT, MB),
    ("rss_bytes", "rss_bytes", Role.RESIDENT, 1),
    ("rss_kb", "rss_bytes", Role.RESIDENT, 1e3),
    ("rss_mib", "rss_bytes", Role.RESIDENT, MIB),
    ("rss_gib", "rss_bytes", Role.RESIDENT, GIB),
    ("rssMB", "rss_bytes", Role.RESIDENT, MB),
    ("rss kB", "rss_bytes", Role.RESIDENT, 1e3),
    ("RSS (MB)", "rss_bytes", Role.RESIDENT, MB),
    ("main_rss_mb", "main_rss_bytes", Role.RESIDENT, MB),
    ("rss_epoch_begin_bytes", "rss_epoch_begin_bytes", Role.RESIDENT, 1),
    ("memory [MiB]", "memory_bytes", Role.RESIDENT, MIB),
    ("Memory usage (in MiB)", "memory_usage_bytes", Role.RESIDENT, MIB),
    ("mb", "memory_bytes", Role.RESIDENT, MB),
    ("MB", "memory_bytes", Role.RESIDENT, MB),
    ("内存(MB)", "内存_bytes", Role.RESIDENT, MB),
    ("working_mb", "working_bytes", Role.RESIDENT, MB),
    ("engine_mb", "engine_bytes", Role.RESIDENT, MB),
    ("private_mb", "private_bytes", Role.UNIQUE, MB),
    ("uss_mb", "uss_bytes", Role.UNIQUE, MB),
    ("main_uss_mb", "main_uss_bytes", Role.UNIQUE, MB),
    ("pss_mb", "pss_bytes", Role.PROPORTIONAL, MB),
    ("vms_mb", "vms_bytes", Role.VIRTUAL, MB),
    ("VmPeak_mb", "vm_peak_bytes", Role.VIRTUAL, MB),
    ("vmpeak_mb", "vmpeak_bytes", Role.VIRTUAL, MB),
    ("vmsize_kb", "vmsize_bytes", Role.VIRTUAL, 1e3),
    ("swap_used_bytes", "swap_used_bytes", Role.SWAP, 1),
    ("max_rss_mib", "max_rss_bytes", Role.PEAK, MIB),
    ("vram_peak_gb", "vram_peak_bytes", Role.PEAK, GB),
    ("vram_peak_allocated_gb", "vram_peak_allocated_bytes", Role.PEAK, GB),
    ("host_used_bytes", "host_used_bytes", Role.HOST, 1),
    ("host_used_gib", "host_used_bytes", Role.HOST, GIB),
    ("host_cached_bytes", "host_cached_bytes", Role.CACHE, 1),
    ("memory.used [MiB]", "memory_used_bytes", Role.DEVICE, MIB),
    ("used_gpu_memory [MiB]", "used_gpu_memory_bytes", Role.DEVICE, MIB),
    ("VRAM (MB)", "vram_bytes", Role.DEVICE, MB),
    ("gpu_mem_gib", "gpu_mem_bytes", Role.DEVICE, GIB),
    ("vram_smi_mb", "vram_smi_bytes", Role.DEVICE, MB),
    ("vram_driver_mb", "vram_driver_bytes", Role.DEVICE, MB),
    ("vram_after_forward_mib", "vram_after_forward_bytes", Role.DEVICE, MIB),
    ("vram_active_mb", "vram_active_bytes", Role.DEVICE_ALLOCATED, MB),
    ("vram_allocated_mb", "vram_allocated_bytes", Role.DEVICE_ALLOCATED, MB),
    ("vram_reserved_gb", "vram_reserved_bytes", Role.DEVICE_RESERVED, GB),
    ("heap_used_bytes", "heap_used_bytes", Role.COLLECTED_HEAP, 1),
    ("heap_used_gb", "heap_used_bytes", Role.COLLECTED_HEAP, GB),
    ("heap_total_mb", "heap_total_bytes", Role.COLLECTED_HEAP, MB),
    ("heap_js_mb", "heap_js_bytes", Role.COLLECTED_HEAP, MB),
    ("heap_mb", "heap_bytes", Role.COLLECTED_HEAP, MB),
    ("external_mb", "external_bytes", Role.COLLECTED_HEAP, MB),
    ("heap_wasm_mb", "heap_wasm_bytes", Role.IN_USE, MB),
    ("malloc_inuse_mb", "malloc_inuse_bytes", Role.IN_USE, MB),
    ("in_use_mb", "in_use_bytes", Role.IN_USE, MB),
    ("tensor_mb", "tensor_bytes", Role.IN_USE, MB),
    ("system.gpu.0.memoryAllocatedBytes", None, Role.DEVICE_ALLOCATED, 1),
]

COUNTS = [
    ("tensors", Role.TENSORS),
    ("tensors_cpu", Role.TENSORS),
    ("tensors_gpu", Role.TENSORS),
    ("live_objects", Role.OBJECTS),
    ("handles_live", Role.OBJECTS),
    ("handles_reachable", Role.OBJECTS),
    ("cache_entries", Role.OBJECTS),
    ("buffers", Role.OBJECTS),
    ("py_blocks", Role.OBJECTS),
    ("nproc", Role.PROCESSES),
]

AXES = [
    ("step", AxisKind.STEP, 1),
    ("trainer/global_step", AxisKind.STEP, 1),
    ("iteration", AxisKind.STEP, 1),
    ("batch", AxisKind.STEP, 1),
    ("batches", AxisKind.STEP, 1),
    ("epoch", AxisKind.EPOCH, 1),
    ("request", AxisKind.REQUEST, 1),
    ("queries", AxisKind.REQUEST, 1),
    ("calls", AxisKind.REQUEST, 1),
    ("predict", AxisKind.REQUEST, 1),
    ("time_s", AxisKind.SECONDS, 1),
    ("time_h", AxisKind.SECONDS, 3600),
    ("elapsed (min)", AxisKind.SECONDS, 60),
    ("time_ms", AxisKind.SECONDS, 1e-3),
    ("hours", AxisKind.SECONDS, 3600),
    ("_timestamp", AxisKind.SECONDS, 1),
    ("Wall time", AxisKind.SECONDS, 1),
    ("cycle", AxisKind.INDEX, 1),
    ("sample", AxisKind.INDEX, 1),
    ("dump", AxisKind.INDEX, 1),
    ("load", AxisKind.INDEX, 1),
    ("builds", AxisKind.INDEX, 1),
]

NEITHER = ["loss", "lr", "batch_size", "step_time", "data_time_ms", "tokens_per_s", "MB/s", "Value"]
NEITHER += ["disk_read_mb", "utilization.memory [%]", "cycle_in_phase", "", "#", "gpu_power_w"]


@pytest.mark.parametrize(("name", "metric", "role", "factor"), AMOUNTS)
def test_amounts_are_recognised_with_their_unit(
    name: str, metric: str | None, role: Role, factor: float
) -> None:
    meaning = recognise(name)
    assert (meaning.part, meaning.role) == (Part.METRIC, role)
    assert (meaning.unit, meaning.factor) == (Unit.BYTES, factor)
    assert metric is None or meaning.metric == metric


@pytest.mark.parametrize(("name", "role"), COUNTS)
def test_counts_keep_their_name(name: str, role: Role) -> None:
    meaning = recognise(name)
    assert (meaning.metric, meaning.role, meaning.unit) == (name, role, Unit.COUNT)


@pytest.mark.parametrize(("name", "kind", "factor"), AXES)
def test_axes_are_recognised(name: str, kind: AxisKind, factor: float) -> None:
    meaning = recognise(name)
    assert (meaning.part, meaning.axis, meaning.factor) == (Part.AXIS, kind, factor)


@pytest.mark.parametrize("name", NEITHER)
def test_other_columns_are_left_alone(name: str) -> None:
    assert recognise(name).part is Part.OTHER


@pytest.mark.parametrize("name", ["memory", "Memory usage", "max_mem", "GPU_mem", "VmRSS", "free"])
def test_memory_without_a_unit_has_none(name: str) -> None:
    meaning = recognise(name)
    assert (meaning.part, meaning.unit) == (Part.METRIC, None)


@pytest.mark.parametrize(
    "name",
    [
        *("available", "available_mb", "mem_free", "MemAvailable", "mem_left", "memory not used"),
        *("memoria disponible (GiB)", "mémoire libre", "memória livre", "Freier Speicher (MB)"),
        *("可用内存", "显存剩余", "空きメモリ", "여유 메모리", "unused_mem_mb", "свободная память"),
    ],
)
def test_what_is_left_falls(name: str) -> None:
    assert recognise(name).falling


@pytest.mark.parametrize(
    "name", ["heap left by GC", "free_not_returned_mb", "已用内存", "使用メモリ"]
)
def test_what_is_kept_does_not_fall(name: str) -> None:
    meaning = recognise(name)
    assert not meaning.falling


@pytest.mark.parametrize(
    ("name", "may_be"),
    [
        *(
            ("memoria sobrante (GiB)", True),
            ("idle_mem_mb", True),
            ("nicht belegter Speicher", True),
        ),
        *(("rss_mb", False), ("GPU memory used [MiB]", False), ("host_memory_percent", False)),
        *(
            ("内存占用", False),
            ("gpu0 mem", False),
            ("mem_free", False),
            ("peak rss of rank 3", False),
        ),
    ],
)
def test_an_unknown_word_may_say_that_memory_is_free(name: str, may_be: bool) -> None:
    assert recognise(name).may_be_free is may_be


@pytest.mark.parametrize("name", ["%MEM", "host_used_percent", "memory_percent", "mem (%)"])
def test_percentages_are_percentages(name: str) -> None:
    meaning = recognise(name)
    assert meaning.unit is Unit.PERCENT
    assert meaning.metric.endswith("_percent")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("phase", Part.PHASE),
        ("Stage", Part.PHASE),
        ("pid", Part.PID),
        ("PID", Part.PID),
        ("process_id", Part.PID),
        ("data.pid", Part.PID),
        ("process.parent.pid", Part.OTHER),
        ("rank", Part.LABEL),
        ("local_rank", Part.LABEL),
        ("process", Part.LABEL),
        ("hostname", Part.LABEL),
        ("gpu_id", Part.LABEL),
        ("generation", Part.GENERATION),
    ],
)
def test_tags_are_recognised(name: str, part: Part) -> None:
    assert recognise(name).part is part


def test_steps_come_before_iterations_before_time() -> None:
    names = ["step", "iteration", "batch", "epoch", "request", "time_s", "sample"]
    ranks = [recognise(name).rank for name in names]
    assert ranks == sorted(ranks)


def test_the_user_decides_what_a_metric_is() -> None:
    assert as_metric("value", Unit.BYTES, MB).metric == "value_bytes"
    assert as_metric("value", Unit.COUNT).metric == "value"
    assert as_metric("rss_mb").factor == MB
    assert as_metric("value").unit is None


@given(st.text(max_size=40))
def test_any_name_means_something(name: str) -> None:
    meaning = recognise(name)
    assert (meaning.part is Part.METRIC) == bool(meaning.metric)
    assert (meaning.part is Part.METRIC) == (meaning.role is not None)
