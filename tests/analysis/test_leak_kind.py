"""What kind of memory leaks, by how fast the meters of one process grow beside each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report import diagnoses
from report.diagnoses import interval

from memdiag.analysis.cross_series.evidence import evidence
from memdiag.analysis.cross_series.leak_kind import AROUND_TENSOR_BYTES, leaking
from memdiag.analysis.decision.across.decide import correct, decide
from memdiag.probe.ring_format import BLOCK_BYTES
from memdiag.values.findings import EvidenceKind, Finding, Leaking
from memdiag.values.measurements import Axis, AxisKind, Role, Unit
from memdiag.values.memory_kind import MemoryKind
from memdiag.values.metrics import METRIC_ROLES
from memdiag.values.verdict import Reason, Verdict

STEPS = 200
SECONDS = Axis(name="at_s", kind=AxisKind.SECONDS)


def meter(metric: str, per_step: float, *, points: int = 50, process: str = "main") -> Finding:
    """A meter that grows by so much per step; one that does is a leak."""
    last = STEPS // points * points
    trace = [(float(x), 1e6 + per_step * x) for x in range(0, last + 1, last // points)]
    grows = per_step > 0
    reason = Reason.OUTLASTS_WARMUP if grows else Reason.FLAT
    found = diagnoses.series(trace, Verdict.LEAK if grows else Verdict.STABLE, reason)
    unit = Unit.BYTES if metric.endswith("_bytes") else Unit.COUNT
    role = METRIC_ROLES[metric]
    return replace(
        found,
        metric=metric,
        process=process,
        role=role,
        unit=unit,
        growth_per_x=interval(per_step),
        samples=len(trace),
    )


def kind(**per_step: float) -> Leaking | None:
    """Of a leak that malloc tells, with what else is known beside; few looks at all tensors."""
    seldom = {"tensor_bytes", "graph_nodes", "gc_objects"}
    meters = [meter(m, rate, points=3 if m in seldom else 50) for m, rate in per_step.items()]
    return leaking(meters, 0)


def test_tensors_that_hold_most_of_the_growth_are_named_with_their_share() -> None:
    found = kind(malloc_bytes=1500, python_blocks=2, tensors=1, tensor_bytes=1200, graph_nodes=0)
    assert found is not None
    assert found.kind is MemoryKind.TENSORS
    whole = 1500 + 2 * BLOCK_BYTES
    assert found.share == pytest.approx((1200 + AROUND_TENSOR_BYTES) / whole)


def test_tensors_beside_nodes_that_were_not_counted_may_be_what_graphs_have_saved() -> None:
    found = kind(malloc_bytes=1500, python_blocks=2, tensors=1, tensor_bytes=1200)
    assert found == Leaking(kind=MemoryKind.TENSORS, share=None)


def test_blocks_of_python_that_decide_are_small_objects() -> None:
    assert kind(python_blocks=100) == Leaking(kind=MemoryKind.PYTHON_OBJECTS, share=None)


def test_many_small_tensors_are_tensors_and_not_what_is_around_them() -> None:
    found = kind(malloc_bytes=3700, python_blocks=20, tensors=10, tensor_bytes=80, graph_nodes=0)
    assert found is not None
    assert found.kind is MemoryKind.TENSORS


def test_kept_losses_are_graphs_and_no_tensors() -> None:
    """A scalar a step that Python keeps: what is behind it is what leaks."""
    found = kind(malloc_bytes=7850, python_blocks=2, tensors=1, tensor_bytes=4, graph_nodes=7)
    assert found is not None
    assert found.kind is MemoryKind.GRAPH


def test_kept_losses_are_graphs_where_what_these_saved_counts_as_tensors() -> None:
    found = kind(malloc_bytes=7850, python_blocks=2, tensors=3, tensor_bytes=7000, graph_nodes=7)
    assert found is not None
    assert found.kind is MemoryKind.GRAPH


def test_what_is_in_no_tensor_no_graph_and_no_small_object_is_native() -> None:
    found = kind(malloc_bytes=50_000, python_blocks=1, tensors=0, tensor_bytes=0, graph_nodes=0)
    assert found is not None
    assert found.kind is MemoryKind.NATIVE


def test_small_objects_are_named_though_malloc_is_stable() -> None:
    meters = [meter("rss_bytes", 10_800), meter("malloc_bytes", 0), meter("python_blocks", 124)]
    found = leaking(meters, 0)
    assert found is not None
    assert found.kind is MemoryKind.PYTHON_OBJECTS


def test_cycles_that_are_never_collected_are_named_before_what_is_in_them() -> None:
    found = kind(
        malloc_bytes=66_000,
        python_blocks=6,
        tensors=1,
        tensor_bytes=65_536,
        graph_nodes=0,
        gc_unreachable_bytes=65_000,
    )
    assert found is not None
    assert found.kind is MemoryKind.CYCLES


def test_blocks_that_counting_the_graph_leaves_are_no_objects() -> None:
    found = kind(malloc_bytes=6_000, python_blocks=77, tensors=1, tensor_bytes=4, graph_nodes=75)
    assert found is not None
    assert found.kind is MemoryKind.GRAPH
    assert found.share == pytest.approx(1 - 2 * BLOCK_BYTES / 6_174, abs=0.01)


def test_small_objects_have_no_more_of_the_growth_than_malloc_leaves() -> None:
    """Blocks of 33 bytes, of which the mean size is not known."""
    meters = [meter("rss_bytes", 10_200), meter("malloc_bytes", 2_490), meter("python_blocks", 310)]
    found = leaking(meters, 0)
    assert found is not None
    assert found.kind is MemoryKind.PYTHON_OBJECTS
    assert found.share == pytest.approx(1 - 2_490 / 10_200, abs=0.01)


def test_blocks_that_are_known_by_time_alone_are_converted() -> None:
    """Two steps a second, and blocks that were read too rarely to have steps."""
    blocks = replace(meter("python_blocks", 248), axis=SECONDS)
    pages = replace(meter("rss_bytes", 10_800), growth_per_s=interval(21_600))
    found = leaking([pages, meter("malloc_bytes", 0), blocks], 0)
    assert found is not None
    assert found.kind is MemoryKind.PYTHON_OBJECTS


def test_without_a_look_at_tensors_native_memory_is_not_told_from_theirs() -> None:
    once = replace(meter("tensor_bytes", 0), trace=((50.0, 1e6),))
    meters = [meter("malloc_bytes", 9000), meter("python_blocks", 1), once]
    found = leaking(meters, 0)
    assert found == Leaking(kind=MemoryKind.NATIVE_OR_TENSORS, share=None)


def test_a_count_that_grows_names_tensors_where_their_bytes_are_unknown() -> None:
    found = kind(malloc_bytes=9000, python_blocks=1, tensors=1)
    assert found == Leaking(kind=MemoryKind.TENSORS, share=None)


@pytest.mark.parametrize(
    ("free", "expected"), [(9500, MemoryKind.HOLES), (10, MemoryKind.MAPPED), (None, None)]
)
def test_pages_beyond_what_is_in_use_are_holes_or_mapped(
    free: float | None, expected: MemoryKind | None
) -> None:
    meters = [meter("rss_bytes", 10_000), meter("malloc_bytes", 0), meter("python_blocks", 0)]
    meters += [] if free is None else [meter("malloc_free_bytes", free)]
    found = leaking(meters, 0)
    assert (None if found is None else found.kind) is expected


def test_tensors_in_shared_memory_are_tensors_though_malloc_is_stable() -> None:
    meters = [meter("rss_bytes", 10_000), meter("malloc_bytes", 0), meter("python_blocks", 0)]
    found = leaking([*meters, meter("tensor_bytes", 9900)], 0)
    assert found is not None
    assert found.kind is MemoryKind.TENSORS


def test_arrays_of_jax_are_tensors() -> None:
    found = kind(malloc_bytes=70_000, python_blocks=5, jax_array_bytes=65_536)
    assert found is not None
    assert found.kind is MemoryKind.TENSORS


def test_growth_before_the_leak_began_does_not_count() -> None:
    """Parameters are made, then something native leaks."""
    filled = tuple((float(x), min(x, 50) * 1e6) for x in range(0, 201, 10))
    tensors = replace(meter("tensor_bytes", 0), trace=filled)
    leak = replace(meter("malloc_bytes", 9000), onset_x=interval(60.0))
    nodes = meter("graph_nodes", 0)
    found = leaking([leak, meter("python_blocks", 0), tensors, nodes], 0)
    assert found is not None
    assert found.kind is MemoryKind.NATIVE


def test_meters_of_other_processes_and_axes_are_left_out() -> None:
    leak = meter("malloc_bytes", 9000, process="DataLoader worker 0")
    other = meter("tensor_bytes", 9000)
    late = replace(meter("tensor_bytes", 9000, process="DataLoader worker 0"), axis=SECONDS)
    blocks = meter("python_blocks", 0, process="DataLoader worker 0")
    found = leaking([leak, blocks, other, late, meter("graph_nodes", 0)], 0)
    assert found == Leaking(kind=MemoryKind.NATIVE_OR_TENSORS, share=None)


def test_no_kind_without_a_leak_of_host_memory() -> None:
    stable = [meter("malloc_bytes", 0), meter("python_blocks", 0)]
    assert leaking(stable, 0) is None
    assert leaking((), None) is None
    device = meter("vram_allocated_bytes", 9000)
    assert leaking([device, meter("python_blocks", 0)], 0) is None
    assert leaking([meter("rss_bytes", 9000)], 0) is None  # nothing exact is known beside it


def by_holes(free: float, malloc: float = 0, pages: float = 9e4) -> tuple[Finding, ...]:
    """Pages that grow, in a job of one process; a megabyte is free from the start."""
    meters = [meter("rss_bytes", pages), meter("rss_bytes", pages, process="tree")]
    meters += [meter("malloc_bytes", malloc), meter("python_blocks", 0)]
    return correct([*meters, meter("malloc_free_bytes", free)])


def test_pages_that_grow_by_mallocs_holes_alone_are_no_leak() -> None:
    found = by_holes(8e4)
    verdict, _, decided_by = decide(found)
    assert verdict is Verdict.STABLE
    told = evidence(found, decided_by)
    assert [e.kind for e in told] == [EvidenceKind.IN_USE_FLAT]
    assert "rss_bytes" in told[0].subject


def test_pages_that_grow_within_what_malloc_holds_free_are_no_leak() -> None:
    """300 bytes a step of what was free and never touched; no more than a part of the level."""
    assert decide(by_holes(0.0, pages=300.0))[0] is Verdict.STABLE
    assert decide(by_holes(0.0, pages=2000.0))[0] is Verdict.LEAK


@pytest.mark.parametrize(("free", "malloc"), [(100.0, 0.0), (8e4, 5e3)])
def test_pages_that_grow_otherwise_or_beside_a_leak_stay_a_leak(free: float, malloc: float) -> None:
    assert decide(by_holes(free, malloc))[0] is Verdict.LEAK


def test_stable_tensors_do_not_say_that_all_in_use_is_stable() -> None:
    pages, tensors = meter("rss_bytes", 9e4), meter("tensor_bytes", 0)
    assert tensors.role is Role.IN_USE
    told = evidence([pages, tensors], 0)
    assert EvidenceKind.IN_USE_FLAT not in {e.kind for e in told}
    doubt = replace(pages, verdict=Verdict.INCONCLUSIVE, reason=Reason.UNCERTAIN_TREND)
    assert decide([doubt, tensors, meter("python_blocks", 0)])[0] is Verdict.INCONCLUSIVE


def test_what_all_tensors_say_is_not_said_again_of_a_device() -> None:
    leak = meter("malloc_bytes", 9000)
    told = evidence([leak, meter("tensors", 1), meter("tensors_cpu", 1)], 0)
    assert [e.against for e in told] == ["main tensors"]
    alone = evidence([leak, meter("tensors_cpu", 1)], 0)
    assert [e.kind for e in alone] == [EvidenceKind.TENSORS_GROW]


@pytest.mark.parametrize(
    ("counted", "kind"),
    [
        ("tensors", EvidenceKind.COUNT_GROWS),
        ("gc_objects", EvidenceKind.COUNT_GROWS),
        ("processes", EvidenceKind.PROCESSES_GROW),
    ],
)
def test_what_accumulates_beside_stable_memory_is_told(counted: str, kind: EvidenceKind) -> None:
    told = evidence([meter("rss_bytes", 0), meter(counted, 2)], 0)
    assert [(e.kind, e.against) for e in told] == [(kind, f"main {counted}")]
    assert not evidence([meter("rss_bytes", 0), meter(counted, 0)], 0)


def test_growth_within_free_memory_is_not_called_holes_while_memory_in_use_is_open() -> None:
    malloc = replace(
        meter("malloc_bytes", 0.0),
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.RECLAIMED_BEFORE,
    )
    beside = [meter("python_blocks", 0.0), meter("malloc_free_bytes", 0.0)]
    for in_use, is_holes in ((malloc, False), (meter("malloc_bytes", 0.0), True)):
        pages = correct([meter("rss_bytes", 300.0), in_use, *beside])[0]
        (said,) = [one.text for one in pages.trail if one.check == "holes"]
        assert ("is holes between blocks" in said) is is_holes
        assert ("leaks is not decided" in said) is not is_holes


def test_memory_of_a_process_that_does_not_grow_says_nothing_of_the_job() -> None:
    workers = [meter("rss_bytes", 3e4, process=name) for name in ("Process-1", "Process-2")]
    job = [meter("rss_bytes", 6e4, process="tree"), *workers, meter("malloc_bytes", 0)]
    assert evidence(job, 0) == ()
    alone = [meter("rss_bytes", 6e4, process="tree"), meter("rss_bytes", 6e4), job[-1]]
    assert [e.kind for e in evidence(alone, 0)] == [EvidenceKind.IN_USE_FLAT]


def test_pages_half_of_which_malloc_has_free_or_in_use_are_not_mapped() -> None:
    """Exceptions that keep tensors: 200 KB of pages, 84 KB in use, 60 KB of holes between it."""
    pages = {"rss_bytes": 200e3, "malloc_bytes": 83e3, "malloc_free_bytes": 60e3}
    rest = {"python_blocks": 11.0, "tensors": 2.0, "tensor_bytes": 82e3, "graph_nodes": 0.0}
    found = leaking([meter(metric, rate) for metric, rate in {**pages, **rest}.items()], 0)
    assert found is not None
    assert found.kind is MemoryKind.TENSORS
