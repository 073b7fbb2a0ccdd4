"""The table in docs/vram.md, row by row: what the device's figures say together."""

from __future__ import annotations

import numpy as np
import pytest

from memdiag.analysis.diagnose import diagnose
from memdiag.report.sections import advice
from memdiag.report.text.screen import Screen
from memdiag.values.findings import EvidenceKind, RecordingFinding
from memdiag.values.measurements import Axis, AxisKind, Limit, Recording, Role, Series, Unit
from memdiag.values.verdict import Reason, Verdict

STEPS = 600
MIB = 1 << 20
ROLES = {
    "vram_bytes": Role.DEVICE,
    "vram_reserved_bytes": Role.DEVICE_RESERVED,
    "vram_allocated_bytes": Role.DEVICE_ALLOCATED,
    "vram_active_bytes": Role.DEVICE_ALLOCATED,
    "vram_inactive_split_bytes": Role.HOLES,
    "vram_allocations": Role.TENSORS,
    "vram_alloc_retries": Role.EVENTS,
    "vram_ooms": Role.EVENTS,
    "jax_allocated_bytes": Role.DEVICE_ALLOCATED,
    "jax_reserved_bytes": Role.DEVICE_RESERVED,
    "rss_bytes": Role.RESIDENT,
    "tensors_cuda": Role.TENSORS,
    "tensors_cpu": Role.TENSORS,
}
COUNTS = frozenset({Role.TENSORS, Role.EVENTS})
NAMES = {
    "vram": "vram_bytes",
    "rss": "rss_bytes",
    "reserved": "vram_reserved_bytes",
    "allocated": "vram_allocated_bytes",
    "active": "vram_active_bytes",
    "holes": "vram_inactive_split_bytes",
    "allocations": "vram_allocations",
    "retries": "vram_alloc_retries",
    "ooms": "vram_ooms",
}
FLAT, GROWS = 0.0, 1.0


def series(metric: str, growth: float, process: str, seed: int) -> Series:
    """1 GiB (1000 tensors) with noise, growing by `growth` MiB (tensors) per step."""
    is_count = ROLES[metric] is Role.EVENTS
    noise = np.zeros(STEPS) if is_count else np.random.default_rng(seed).normal(0, 1, STEPS)
    x = np.arange(STEPS, dtype=float)
    unit = Unit.COUNT if ROLES[metric] in COUNTS else Unit.BYTES
    start, scale = (1000, 1) if unit is Unit.COUNT else (1024 * MIB, MIB)
    return Series(
        metric=metric,
        column=metric,
        role=ROLES[metric],
        unit=unit,
        axis=Axis(name="step", kind=AxisKind.STEP),
        x=x,
        y=np.round(start + scale * (growth * x + noise)),
        process=process,
        at_s=x * 0.1,
    )


def found(limits: tuple[Limit, ...] = (), **growths: float) -> RecordingFinding:
    """`found(vram=GROWS, reserved=FLAT, ...)`; the driver's figure is also the tree's."""
    made = []
    for at, (name, growth) in enumerate(growths.items()):
        metric = NAMES.get(name, name)
        made.append(series(metric, growth, "main", at))
        if metric in {"vram_bytes", "rss_bytes"}:
            made.append(series(metric, growth, "tree", at))
    return diagnose(Recording(source="test", series=tuple(made), limits=limits))


def verdict_of(finding: RecordingFinding, metric: str) -> set[tuple[Verdict, Reason | None]]:
    return {(f.verdict, f.reason) for f in finding.series if f.metric == metric}


def kinds(finding: RecordingFinding) -> set[EvidenceKind]:
    return {evidence.kind for evidence in finding.evidence}


def test_reserved_grows_while_allocated_is_flat_is_the_cache() -> None:
    finding = found(vram=GROWS, reserved=GROWS, allocated=FLAT)
    overruled = {(Verdict.INCONCLUSIVE, Reason.OVERRULED)}
    assert verdict_of(finding, "vram_reserved_bytes") == overruled
    assert verdict_of(finding, "vram_bytes") == overruled  # of the process and of the tree
    assert finding.verdict is not Verdict.LEAK
    assert EvidenceKind.ALLOCATED_FLAT in kinds(finding)
    assert EvidenceKind.RESERVED_FLAT not in kinds(finding)


def advised(finding: RecordingFinding) -> str:
    """The report's advice, on one line."""
    return " ".join(" ".join(t.plain for t in advice.lines(finding, Screen(width=80))).split())


def test_the_caches_growth_is_advised_on() -> None:
    finding = found(reserved=GROWS, allocated=FLAT, holes=FLAT)
    assert EvidenceKind.HOLES_GROW not in kinds(finding)
    assert "torch.cuda.empty_cache() between phases" in advised(finding)


def test_the_cache_that_grows_by_holes_is_fragmented() -> None:
    finding = found(vram=GROWS, reserved=GROWS, allocated=FLAT, holes=GROWS)
    assert finding.verdict is not Verdict.LEAK
    assert {EvidenceKind.ALLOCATED_FLAT, EvidenceKind.HOLES_GROW} <= kinds(finding)
    assert "expandable_segments:True" in advised(finding)
    assert "empty_cache() does not help" in advised(finding)


def test_allocated_grows_with_its_tensors_is_tensors_kept() -> None:
    finding = found(vram=GROWS, reserved=GROWS, allocated=GROWS, tensors_cuda=GROWS)
    assert finding.verdict is Verdict.LEAK
    assert EvidenceKind.TENSORS_GROW in kinds(finding)
    assert "losses.append(loss)" in advised(finding)


def test_allocated_grows_while_the_tensor_count_is_flat_is_graphs_or_larger_tensors() -> None:
    finding = found(vram=GROWS, reserved=GROWS, allocated=GROWS, tensors_cuda=FLAT)
    assert finding.verdict is Verdict.LEAK
    assert EvidenceKind.TENSORS_FLAT in kinds(finding)


def test_allocations_grow_while_pythons_tensors_do_not_is_graphs() -> None:
    finding = found(allocated=GROWS, allocations=GROWS, tensors_cuda=FLAT)
    assert finding.verdict is Verdict.LEAK
    assert {EvidenceKind.ALLOCATIONS_GROW, EvidenceKind.TENSORS_FLAT} <= kinds(finding)
    assert "autograd graph" in advised(finding)


def test_allocations_grow_with_allocated_is_tensors_kept() -> None:
    finding = found(allocated=GROWS, allocations=GROWS)
    assert EvidenceKind.ALLOCATIONS_GROW in kinds(finding)
    assert "losses.append(loss)" in advised(finding)


def test_as_many_allocations_of_more_bytes_are_larger_tensors() -> None:
    finding = found(vram=GROWS, reserved=GROWS, allocated=GROWS, allocations=FLAT)
    assert finding.verdict is Verdict.LEAK
    assert EvidenceKind.ALLOCATIONS_FLAT in kinds(finding)
    assert "shapes over time" in advised(finding)


def test_steady_allocations_say_nothing_of_a_growing_cache() -> None:
    finding = found(reserved=GROWS, allocated=FLAT, allocations=FLAT)
    assert EvidenceKind.ALLOCATIONS_FLAT not in kinds(finding)


def test_active_grows_while_allocated_is_flat_is_blocks_that_wait_for_a_stream() -> None:
    finding = found(reserved=GROWS, allocated=FLAT, active=GROWS)
    assert finding.verdict is Verdict.LEAK  # nothing else can use them
    assert EvidenceKind.WAITING_GROWS in kinds(finding)
    assert "record_stream" in advised(finding)


@pytest.mark.parametrize("growth", [FLAT, GROWS])
@pytest.mark.parametrize(
    ("name", "kind"),
    [("retries", EvidenceKind.RETRIES_RISE), ("ooms", EvidenceKind.OOMS_RISE)],
)
def test_a_full_device_is_told_whatever_the_verdict(
    name: str, kind: EvidenceKind, growth: float
) -> None:
    finding = found(allocated=growth, **{name: 0.01})
    assert kind in kinds(finding)
    assert kind not in kinds(found(allocated=growth, **{name: FLAT}))
    if growth == GROWS:
        assert "The device is full" in advised(finding)


def test_events_and_holes_are_no_leak_by_themselves() -> None:
    finding = found(allocated=FLAT, holes=GROWS, retries=GROWS, ooms=GROWS)
    assert finding.verdict in {Verdict.STABLE, Verdict.WARMUP}


def test_one_frameworks_stable_says_nothing_of_anothers_growth() -> None:
    finding = found(
        vram=GROWS,
        reserved=FLAT,
        allocated=FLAT,
        jax_reserved_bytes=GROWS,
        jax_allocated_bytes=GROWS,
    )
    assert verdict_of(finding, "jax_reserved_bytes").pop()[0] is Verdict.LEAK
    assert verdict_of(finding, "vram_bytes").pop()[0] is Verdict.LEAK
    mixed = found(reserved=GROWS, jax_allocated_bytes=FLAT)
    assert EvidenceKind.ALLOCATED_FLAT not in kinds(mixed)


def test_the_driver_sees_growth_that_the_framework_does_not() -> None:
    finding = found(vram=GROWS, reserved=FLAT, allocated=FLAT)
    assert finding.verdict is Verdict.LEAK
    assert EvidenceKind.RESERVED_FLAT in kinds(finding)
    assert EvidenceKind.ALLOCATED_FLAT not in kinds(finding)


def test_host_memory_grows_while_the_device_is_flat_says_nothing_of_the_device() -> None:
    finding = found(rss=GROWS, vram=FLAT, reserved=FLAT, allocated=FLAT, tensors_cuda=FLAT)
    assert finding.verdict is Verdict.LEAK
    assert not kinds(finding) & {
        EvidenceKind.ALLOCATED_FLAT,
        EvidenceKind.RESERVED_FLAT,
        EvidenceKind.TENSORS_FLAT,
    }


def test_device_memory_grows_while_the_hosts_tensors_are_flat_says_nothing_of_them() -> None:
    finding = found(vram=GROWS, tensors_cpu=FLAT)
    assert EvidenceKind.TENSORS_FLAT not in kinds(finding)


def test_all_flat_is_stable() -> None:
    finding = found(vram=FLAT, reserved=FLAT, allocated=FLAT, tensors_cuda=FLAT)
    assert finding.verdict in {Verdict.STABLE, Verdict.WARMUP}


@pytest.mark.parametrize(("metric", "hits"), [("", 1), ("vram_bytes", 1), ("gpu1_vram_bytes", 0)])
def test_a_limit_of_one_metric_is_for_that_alone(metric: str, hits: int) -> None:
    limit = Limit(name="GPU 0", value_bytes=4 << 30, roles=frozenset({Role.DEVICE}), metric=metric)
    finding = found((limit,), vram=GROWS)
    assert {len(f.limit_hits) for f in finding.series} == {hits}
