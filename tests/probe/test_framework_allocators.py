"""The frameworks' own figures of device memory: read where they are in use, and never before."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import frameworks
import pytest

from memdiag.capture.probelink.channel import ChannelReader
from memdiag.capture.probelink.ring_reader import Kind
from memdiag.probe import ring_format
from memdiag.probe.framework_allocators import (
    Allocators,
    ReadAt,
    TorchAllocator,
    jax,
    metal,
    packed,
    tensorflow,
)
from memdiag.probe.session import Session
from memdiag.values.metrics import METRIC_ROLES

MIB = frameworks.MIB


def ignored(text: str, metric: str) -> None:
    """What the probe would note down."""


def test_torchs_figures_are_summed_over_the_devices() -> None:
    assert TorchAllocator(frameworks.Caching(10, 30))() == {
        "allocated_bytes": 40 * MIB,
        "reserved_bytes": 80 * MIB,
        "active_bytes": 42 * MIB,
        "inactive_split_bytes": 20 * MIB,
        "allocations": 14,
        "alloc_retries": 2,
        "ooms": 0,
    }


def test_torch_is_not_asked_before_the_program_uses_a_device() -> None:
    backend = frameworks.Caching(10)
    backend.initialized = False
    assert TorchAllocator(backend)() is None
    assert backend.asked == []


def test_devices_that_hold_nothing_are_asked_seldom_and_not_forgotten() -> None:
    backend = frameworks.Caching(0, 10, 0, 0, 0, 0, 0, 0)
    read = TorchAllocator(backend)
    for _ in range(640):
        read()
    assert backend.asked.count(1) == 640
    assert backend.asked.count(0) == 10
    backend.held[0] = 5
    for _ in range(64):
        figures = read()
    assert figures is not None
    assert figures["allocated_bytes"] == 15 * MIB


def test_what_an_older_torch_does_not_tell_is_left_out() -> None:
    backend = frameworks.Caching(10)
    told = backend.memory_stats_as_nested_dict(0)
    del told["inactive_split_bytes"], told["num_ooms"]
    backend.memory_stats_as_nested_dict = lambda _: told  # type: ignore[method-assign]
    figures = TorchAllocator(backend)()
    assert figures is not None
    assert not {"inactive_split_bytes", "ooms"} & figures.keys()
    assert packed(figures)[ring_format.ALLOCATOR_READINGS.index("ooms")] == ring_format.ABSENT


def test_metal_is_asked_only_once_tensors_were_seen_there() -> None:
    mps = SimpleNamespace(current_allocated_memory=lambda: 5, driver_allocated_memory=lambda: 9)
    assert metal(mps, lambda: False)() is None
    assert metal(mps, lambda: True)() == {"allocated_bytes": 5, "reserved_bytes": 9}


def test_jax_is_asked_only_once_its_backend_is_there(monkeypatch) -> None:
    read = jax(frameworks.jax(10, 20, arrays=4))
    monkeypatch.delitem(sys.modules, "jax._src.xla_bridge", raising=False)
    assert read() is None
    bridge = SimpleNamespace(_backends={})
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    assert read() is None
    bridge._backends["gpu"] = object()
    assert read() == {"arrays": 4, "allocated_bytes": 30 * MIB, "reserved_bytes": 60 * MIB}


def test_jax_on_a_cpu_tells_its_arrays_and_their_sizes(monkeypatch) -> None:
    bridge = SimpleNamespace(_backends={"cpu": object()})
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    assert jax(frameworks.jax(None, arrays=4))() == {"arrays": 4, "array_bytes": 4 * MIB}


def test_tensorflow_is_asked_only_once_its_context_is_there(monkeypatch) -> None:
    name = "tensorflow.python.eager.context"
    read = tensorflow(frameworks.tensorflow(10, 20))
    monkeypatch.delitem(sys.modules, name, raising=False)
    assert read() is None
    context = SimpleNamespace(_initialized=False)
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(_context=context))
    assert read() is None
    context._initialized = True
    assert read() == {"allocated_bytes": 30 * MIB}
    assert tensorflow(frameworks.tensorflow())() is None


def test_one_that_fails_is_named_and_not_asked_again_and_the_others_are() -> None:
    calls: list[int] = []
    told: list[str] = []

    def broken() -> None:
        calls.append(1)
        raise RuntimeError("another version")

    known = Allocators(lambda text, metric: told.append(metric))
    known.add("jax", broken)
    known.add("mps", lambda: {"allocated_bytes": 1})
    assert set(known.read(ReadAt.STEP)) == {"mps"}
    known.read(ReadAt.STEP)
    assert len(calls) == 1
    assert told == ["jax_allocated_bytes"]


def test_a_forked_child_asks_only_what_survives_forks() -> None:
    known = Allocators(ignored)
    for name in ("vram", "jax", "tensorflow", "mps"):
        known.add(name, lambda: {"allocated_bytes": 1})
    known.after_fork_in_child()
    assert set(known.read(ReadAt.STEP)) == {"vram"}


def test_at_the_end_only_those_are_asked_that_outlive_the_others() -> None:
    known = Allocators(ignored)
    for name in ("vram", "jax", "tensorflow", "mps"):
        known.add(name, lambda: {"allocated_bytes": 1})
    known.read(ReadAt.STEP)
    assert set(known.read(ReadAt.EXIT)) == {"vram"}  # whatever the budget


def test_a_slow_allocator_is_read_within_its_budget(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr("memdiag.probe.process_metrics.monotonic", lambda: now[0])
    monkeypatch.setattr("memdiag.probe.process_metrics.thread_time", lambda: now[0])
    calls = []

    def slow() -> dict[str, int]:
        calls.append(now[0])
        now[0] += 0.001
        return {"allocated_bytes": 1}

    known = Allocators(ignored)
    known.add("jax", slow)
    while now[0] < 100:
        known.read(ReadAt.STEP)
        now[0] += 0.01
    # The first few come before the cost is known.
    assert 10 < len(calls) < 0.0015 * 100 / 0.001


def test_every_figure_of_every_allocator_has_a_role_or_is_none_of_its() -> None:
    of_jax = {"arrays", "array_bytes"}
    torch_like = {r for r in ring_format.ALLOCATOR_READINGS if "spare" not in r} - of_jax
    known = {
        "vram": torch_like,
        "xpu": torch_like,
        "mps": {"allocated_bytes", "reserved_bytes"},
        "jax": {"allocated_bytes", "reserved_bytes", *of_jax},
        "tensorflow": {"allocated_bytes"},
    }
    assert set(known) == set(ring_format.ALLOCATORS)
    named = {f"{name}_{r}" for name, readings in known.items() for r in readings}
    assert named <= METRIC_ROLES.keys()


def test_a_step_brings_the_allocators_figures_in_records_of_their_own(tmp_path: Path) -> None:
    session = Session(str(tmp_path))
    session.schedule.allocators.add("vram", TorchAllocator(frameworks.Caching(10)))
    session.schedule.allocators.add("jax", lambda: {"allocated_bytes": 5, "arrays": 2})
    session.step(1)
    reader = ChannelReader(tmp_path)
    step, *own = reader.drain()
    reader.close()
    assert step.readings["vram_allocated_bytes"] == 10 * MIB
    assert step.readings["vram_reserved_bytes"] == 20 * MIB
    assert [(event.kind, event.name) for event in own] == [
        (Kind.ALLOCATOR, "vram"),
        (Kind.ALLOCATOR, "jax"),
    ]
    assert own[0].readings == {
        "vram_active_bytes": 11 * MIB,
        "vram_inactive_split_bytes": 5 * MIB,
        "vram_allocations": 7,
        "vram_alloc_retries": 1,
        "vram_ooms": 0,
    }
    assert own[1].readings == {"jax_allocated_bytes": 5, "jax_arrays": 2}


# Programs that end by an error, and which memory it is about: 1 a device's, 2 the host's.
ALLOCATES = "import torch; torch.cuda.allocate(300); torch.cuda.allocate(300)"
OF_THE_HOST = 'raise RuntimeError("DefaultCPUAllocator: can\'t allocate memory: you tried to")'
WRAPPED = """
try:
    raise RuntimeError("CUDA error: CUDA out of memory")
except RuntimeError as error:
    raise ValueError("wrapped") from error
"""


@pytest.mark.parametrize(
    ("program", "about"),
    [
        (ALLOCATES, 1.0),
        (WRAPPED, 1.0),
        (OF_THE_HOST, 2.0),
        ("raise MemoryError", 2.0),
        ("raise ValueError('out of ideas')", None),
        ("raise SystemExit(3)", None),
        ("pass", None),
    ],
)
def test_a_program_that_ends_for_want_of_memory_says_so(
    watched, tmp_path: Path, program: str, about: float | None
) -> None:
    frameworks.write_torch(tmp_path / "fake")
    env = {"PYTHONPATH": str(tmp_path / "fake")}
    plain = watched.run_without(sys.executable, "-c", program, env=env)
    done = watched.run(sys.executable, "-c", program, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (
        plain.returncode,
        plain.stdout,
        plain.stderr,
    )
    told = [event.value for event in watched.events() if event.kind is Kind.OUT_OF_MEMORY]
    assert told == ([] if about is None else [about])
