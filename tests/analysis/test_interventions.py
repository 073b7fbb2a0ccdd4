"""What came back tells if an intervention is worth repeating."""

from __future__ import annotations

import pytest

from memdiag.analysis.cause.interventions import with_interventions
from memdiag.values.findings import Advice, Fix, GrowthCause, InterventionFinding
from memdiag.values.holders import Intervention, ProcessInterventions

MB = 1_000_000


def once(action: str, step: int | None, took_s: float = 0.1, **fell: int) -> Intervention:
    """An intervention after which these metrics are lower by so much. A step takes 10 ms."""
    metrics = ("rss_bytes", "malloc_bytes", "python_blocks", "vram_allocated_bytes")
    before = dict.fromkeys((*metrics, "vram_reserved_bytes"), 100 * MB)
    after = {name: value - fell.get(name, 0) for name, value in before.items()}
    at_s = 10.0 + (step or 0) / 100
    return Intervention(
        action=action, at_s=at_s, step=step, took_s=took_s, before=before, after=after
    )


def found(*done: Intervention) -> tuple[InterventionFinding, ...]:
    one = ProcessInterventions(pid=1, process="main", began_s=10.0, done=done)
    cause = with_interventions(None, [one])
    assert cause is not None
    assert (cause.kind, cause.share_explained, cause.culprits) == (None, None, ())
    return cause.interventions


def test_cycles_that_gather() -> None:
    collections = [
        once("gc_collect", step, malloc_bytes=step * 50_000) for step in (100, 500, 2000)
    ]
    (one,) = found(*collections)
    assert one.advice is Advice.CYCLES
    assert one.returned_bytes == 62_500_000
    assert one.returned_per_step == pytest.approx(125 * MB / 1900)
    assert (one.took_s, one.step_s) == (0.1, pytest.approx(0.01))
    assert [each.step for each in one.times] == [100, 500, 2000]


def test_only_the_first_returned_something() -> None:
    done = [once("gc_collect", 100, malloc_bytes=30 * MB), once("gc_collect", 500)]
    assert found(*done)[0].advice is Advice.ONCE


def test_nothing_came_back_or_less_than_noise() -> None:
    done = [once("malloc_trim", step, rss_bytes=900_000) for step in (100, 500)]
    assert found(*done)[0].advice is Advice.USELESS


def test_free_memory_of_malloc_and_of_the_device_allocator() -> None:
    trims = [once("malloc_trim", step, rss_bytes=20 * MB) for step in (100, 500)]
    caches = [once("empty_cache", step, vram_reserved_bytes=30 * MB) for step in (101, 501)]
    trim, cache = found(*trims, *caches)
    assert (trim.advice, trim.returned_bytes) == (Advice.HOLES, 20 * MB)
    assert (cache.advice, cache.returned_device_bytes) == (Advice.CACHE, 30 * MB)


def test_small_objects_of_python_count_with_their_usual_size() -> None:
    done = [once("gc_collect", step, python_blocks=100_000) for step in (100, 500)]
    assert found(*done)[0].returned_bytes == 8_700_000


def test_metrics_that_rose_meanwhile_returned_nothing() -> None:
    done = [once("gc_collect", step, malloc_bytes=-5 * MB) for step in (100, 500)]
    assert found(*done)[0].returned_bytes == 0


def test_one_alone_does_not_tell_if_more_would_return() -> None:
    (one,) = found(once("malloc_trim", 100, rss_bytes=50 * MB))
    assert (one.advice, one.returned_bytes) == (Advice.UNCLEAR, 50 * MB)
    assert one.returned_per_step is None


def test_without_steps_there_is_no_rate() -> None:
    done = [once("gc_collect", None, malloc_bytes=50 * MB)] * 3
    (one,) = found(*done)
    assert (one.advice, one.returned_per_step, one.step_s) == (Advice.CYCLES, None, None)


def test_cause_of_a_leak_keeps_what_was_found() -> None:
    known = GrowthCause(kind=None, share_explained=0.7, culprits=(), fix=None)
    assert with_interventions(known, []) is known
    assert with_interventions(None, []) is None
    one = ProcessInterventions(pid=1, began_s=0.0, done=(once("gc_collect", 5),))
    both = with_interventions(known, [one])
    assert both is not None
    assert both.share_explained == 0.7
    assert len(both.interventions) == 1


@pytest.mark.parametrize(
    ("fix", "then"), [(Fix.RELEASE, Fix.BREAK_CYCLE), (Fix.DETACH, Fix.DETACH), (None, None)]
)
def test_what_a_collection_returns_is_not_freed_by_a_call(
    fix: Fix | None, then: Fix | None
) -> None:
    done = tuple(once("gc_collect", step, malloc_bytes=step * 50_000) for step in (100, 500, 2000))
    one = ProcessInterventions(pid=1, process="main", began_s=10.0, done=done)
    before = GrowthCause(kind=None, share_explained=1.0, culprits=(), fix=fix)
    cause = with_interventions(before, [one])
    assert cause is not None
    assert cause.fix is then
