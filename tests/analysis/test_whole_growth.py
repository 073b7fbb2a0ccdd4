"""The growth of a job is that of all its processes, with all that each keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.test_leak_kind import SECONDS, meter
from report.diagnoses import interval

from memdiag.analysis.cross_series.leak_kind import leaking
from memdiag.analysis.cross_series.whole_growth import whole_growth
from memdiag.analysis.decision.across.decide import decide
from memdiag.probe.ring_format import BLOCK_BYTES
from memdiag.values.findings import Finding, Interval, WholeGrowth
from memdiag.values.memory_kind import MemoryKind
from memdiag.values.verdict import Reason, Verdict

WORKERS = ("DataLoader worker 0", "DataLoader worker 1")


def found(*findings: Finding) -> tuple[WholeGrowth, Finding]:
    """The growth, and the series that decides."""
    _, _, at = decide(findings)
    growth = whole_growth(findings, at)
    assert growth is not None
    assert at is not None
    return growth, findings[at]


def two_workers(first: float, second: float) -> list[Finding]:
    """Native memory of two workers, pages that show it, and a tree with one more process."""
    rates = {WORKERS[0]: first, WORKERS[1]: second}
    own = [meter("malloc_bytes", rate, process=name) for name, rate in rates.items()]
    own += [meter("rss_bytes", 1.02 * rate, process=name) for name, rate in rates.items()]
    own += [meter("python_blocks", 0.0, process=name) for name in rates]
    whole = meter("rss_bytes", 1.02 * (first + second), process="tree")
    return [*own, whole, meter("rss_bytes", 0.0)]


@pytest.mark.parametrize("second", [33_000.0, 9_000.0, 3_000.0])
def test_two_workers_that_leak_both_count(second: float) -> None:
    growth, _ = found(*two_workers(33_000.0, second))
    assert growth.growth_per_x.value == pytest.approx(33_000 + second, rel=0.03)
    assert [part.process for part in growth.parts] == list(WORKERS)
    assert sum(part.share for part in growth.parts) == pytest.approx(1)


def test_the_kind_of_what_two_workers_leak_is_known() -> None:
    findings = two_workers(33_000.0, 30_000.0)
    for name in WORKERS:
        findings += [meter("tensor_bytes", 0.0, process=name), meter("tensors", 0.0, process=name)]
        findings += [meter("graph_nodes", 0.0, process=name)]
    _, _, at = decide(findings)
    kind = leaking(findings, at)
    assert at is not None
    assert findings[at].process == "tree"
    assert kind is not None
    assert kind.kind is MemoryKind.NATIVE


def test_a_total_that_no_process_explains_is_the_growth() -> None:
    """Processes that are started again and again: each is steady."""
    growth, deciding = found(meter("rss_bytes", 0.0), meter("rss_bytes", 5e4, process="tree"))
    assert deciding.process == "tree"
    assert growth.growth_per_x == deciding.growth_per_x
    assert growth.parts == ()


def test_processes_that_grow_are_named_where_only_the_total_is_known_to_leak() -> None:
    doubtful = {"verdict": Verdict.INCONCLUSIVE, "reason": Reason.UNCERTAIN_TREND}
    own = [replace(meter("rss_bytes", 2.5e4, process=name), **doubtful) for name in WORKERS]
    growth, _ = found(*own, meter("rss_bytes", 0.0), meter("rss_bytes", 5e4, process="tree"))
    assert [part.share for part in growth.parts] == [0.5, 0.5]


def test_small_objects_count_beside_malloc() -> None:
    growth, deciding = found(
        meter("malloc_bytes", 9_000), meter("rss_bytes", 13_000), meter("python_blocks", 40)
    )
    assert deciding.metric == "malloc_bytes"
    assert growth.growth_per_x.value == pytest.approx(9_000 + 40 * BLOCK_BYTES)
    assert [part.metric for part in growth.parts] == ["malloc_bytes", "python_blocks"]


def test_their_size_is_that_of_the_pages_beside_malloc_where_these_are_known() -> None:
    free = meter("malloc_free_bytes", 1_000)
    objects = meter("python_blocks", 40)
    growth, _ = found(meter("malloc_bytes", 9_000), meter("rss_bytes", 14_800), objects, free)
    assert growth.growth_per_x.value == pytest.approx(13_800)


@pytest.mark.parametrize("malloc", [0.0, 3_000.0])
def test_pages_that_leak_because_of_objects_grow_by_those(malloc: float) -> None:
    pages = replace(
        meter("rss_bytes", 6_000 + malloc),
        reason=Reason.EXACT_METRIC,
        growth_per_x=None,
        growth_per_s=None,
    )
    others = [meter("malloc_bytes", malloc), meter("malloc_free_bytes", 600)]
    growth = whole_growth([pages, *others, meter("python_blocks", 90)], 0)
    assert growth is not None
    assert growth.growth_per_x.value == pytest.approx(5_400 + malloc)
    assert {part.metric for part in growth.parts} >= {"python_blocks"}


def test_pages_of_a_mapping_are_not_taken_for_the_objects_beside_them() -> None:
    uncertain = Interval(value=163_000, low=80_000, high=246_000)
    pages = replace(meter("rss_bytes", 163_000), growth_per_x=uncertain)
    others = [meter("malloc_bytes", 0), meter("malloc_free_bytes", 0), meter("python_blocks", 6)]
    growth = whole_growth([pages, *others], 0)
    assert growth is not None
    assert growth.growth_per_x == uncertain


def test_objects_that_counting_the_graph_leaves_do_not_count() -> None:
    growth, _ = found(
        meter("malloc_bytes", 54_000),
        meter("rss_bytes", 62_000),
        meter("python_blocks", 75),
        meter("graph_nodes", 75),
    )
    assert growth.growth_per_x.value == pytest.approx(54_000)


def test_parts_that_are_known_by_time_alone_are_converted() -> None:
    """Two steps a second."""
    per_s = replace(meter("python_blocks", 80), axis=SECONDS)
    malloc = replace(meter("malloc_bytes", 9_000), growth_per_s=interval(18_000))
    growth, _ = found(malloc, meter("rss_bytes", 13_000), per_s)
    assert growth.growth_per_x.value == pytest.approx(9_000 + 40 * BLOCK_BYTES)


def test_pages_go_before_malloc_where_a_mapping_grows() -> None:
    """65 KB a step in shared memory, and 500 bytes of malloc about each."""
    pages, malloc = meter("rss_bytes", 65_500), meter("malloc_bytes", 500)
    growth, deciding = found(malloc, pages, meter("malloc_free_bytes", 10))
    assert deciding.metric == "rss_bytes"
    assert growth.growth_per_x.value == pytest.approx(65_500)


def test_pages_go_before_malloc_where_a_mapping_grows_beside_its_fragments() -> None:
    pages, malloc = meter("rss_bytes", 150_000), meter("malloc_bytes", 570)
    _, deciding = found(malloc, pages, meter("malloc_free_bytes", 84_000))
    assert deciding.metric == "rss_bytes"


def test_malloc_goes_before_pages_that_it_fragments() -> None:
    pages, malloc = meter("rss_bytes", 65_500), meter("malloc_bytes", 20_000)
    _, deciding = found(malloc, pages, meter("malloc_free_bytes", 40_000))
    assert deciding.metric == "malloc_bytes"


def test_no_growth_without_a_leak_of_host_memory() -> None:
    assert whole_growth([meter("rss_bytes", 0)], 0) is None
    assert whole_growth([meter("vram_allocated_bytes", 9_000)], 0) is None
    assert whole_growth([], None) is None


def test_the_rate_per_second_is_at_the_pace_of_the_process_that_leaks() -> None:
    """Others step more often, and keep nothing."""
    leak = meter("malloc_bytes", 9_000, process=WORKERS[0])
    slow = replace(leak, growth_per_s=interval(900))
    fast = [
        replace(meter(name, 1.0), growth_per_x=interval(1.0), growth_per_s=interval(5.0))
        for name in ("rss_bytes", "uss_bytes", "pss_bytes")
    ]
    growth, _ = found(slow, *(replace(f, verdict=Verdict.STABLE) for f in fast))
    assert growth.growth_per_s is not None
    assert growth.growth_per_s.value == pytest.approx(0.1 * growth.growth_per_x.value)
