"""Objects in cycles that wait for Python's collector are no leak, real leaks are none of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from memory_series import judge, series_of

from memdiag.values.findings import RecordingFinding
from memdiag.values.measurements import Role, Series, Unit
from memdiag.values.verdict import Reason, Verdict

X = np.arange(0.0, 1800, 6)
GROWS = 85.0  # blocks a step


def _counter(metric: str, y: np.ndarray, x: np.ndarray = X, **more: object) -> Series:
    about = {"role": Role.EVENTS, "metric": metric, "process": "main", "unit": Unit.COUNT}
    return series_of(y, x, **{**about, **more})  # type: ignore[arg-type]


def _judged(
    young_per_step: float,
    full: Callable[[float], float] = lambda x: 0.0,
    freed: Callable[[float], float] = lambda x: 0.0,
    grows_bytes: float = 36e3,
    grows: float = GROWS,
    seed: int = 2,
    others: tuple[Series, ...] = (),
    counter: Callable[[str, np.ndarray], Series] = _counter,
) -> RecordingFinding:
    random = np.random.default_rng(seed)
    blocks = series_of(
        1.25e6 + grows * X + random.normal(0, 200, X.size),
        X,
        role=Role.OBJECTS,
        metric="python_blocks",
        process="main",
        unit=Unit.COUNT,
    )
    malloc = series_of(
        126e6 + grows_bytes * X + random.normal(0, 1e5, X.size),
        X,
        role=Role.IN_USE,
        metric="malloc_bytes",
        process="main",
    )
    pages = series_of(
        350e6 + 1.1 * grows_bytes * X + random.normal(0, 1e5, X.size), X, process="main"
    )
    return judge(
        blocks,
        malloc,
        pages,
        counter("gc_full_collections", np.array([5.0 + full(x) for x in X])),
        counter("gc_full_freed_objects", np.array([23.0 + freed(x) for x in X])),
        counter("gc_young_freed_objects", 10e3 + young_per_step * X),
        *others,
    )


def test_growth_beside_garbage_that_was_never_fully_collected_is_open() -> None:
    found = _judged(0.7 * GROWS)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.deciding is not None
    assert found.deciding.reason is Reason.NOT_COLLECTED
    assert found.deciding.need_more is not None
    assert Verdict.LEAK not in {f.verdict for f in found.series}


def test_blocks_that_grow_by_little_may_be_garbage_as_well() -> None:
    found = _judged(0.4, grows=0.5, grows_bytes=2e3)
    blocks = next(f for f in found.series if f.metric == "python_blocks")
    assert blocks.verdict is Verdict.STABLE
    assert found.verdict is Verdict.INCONCLUSIVE
    assert _judged(0.02, grows=0.5, grows_bytes=2e3).verdict is Verdict.LEAK


@pytest.mark.parametrize("seed", range(6))
def test_blocks_that_grow_by_chance_wait_for_nothing(seed: int) -> None:
    assert _judged(0.0, grows=0.0, grows_bytes=1e3, seed=seed).verdict is Verdict.LEAK


def _rarely(metric: str, y: np.ndarray) -> Series:
    """Read at twelve steps, and between them: on the axis of time."""
    x, at_s = np.full(X.size, np.nan), 20.0 + 0.03 * X
    x[::25] = X[::25]
    rare = np.arange(X.size) % 5 == 0
    return _counter(metric, y[rare], x[rare], at_s=at_s[rare])


def test_counters_of_the_collector_may_be_read_on_another_axis() -> None:
    assert _judged(0.7 * GROWS, counter=_rarely).verdict is Verdict.INCONCLUSIVE
    assert _judged(0.5, counter=_rarely).verdict is Verdict.LEAK


def test_growth_without_garbage_is_a_leak_whether_it_was_collected_or_not() -> None:
    assert _judged(0.5).verdict is Verdict.LEAK
    assert _judged(0.5, full=lambda x: x // 700).verdict is Verdict.LEAK


def test_growth_that_a_full_collection_did_not_free_is_a_leak() -> None:
    """Whatever the young leave behind: the collector has looked, and it is still there."""
    found = _judged(0.7 * GROWS, full=lambda x: x // 700, freed=lambda x: 100 * (x // 700))
    assert found.verdict is Verdict.LEAK


def test_growth_after_a_full_collection_that_freed_much_is_open() -> None:
    found = _judged(0.7 * GROWS, full=lambda x: x // 480 > 0, freed=lambda x: 16e3 * (x >= 480))
    assert found.verdict is Verdict.INCONCLUSIVE


def test_growth_that_outlives_three_full_collections_is_a_leak() -> None:
    found = _judged(0.7 * GROWS, full=lambda x: x // 400, freed=lambda x: 16e3 * (x // 400))
    assert found.verdict is Verdict.LEAK


def test_the_tree_waits_with_the_process_that_has_most_of_its_growth() -> None:
    random = np.random.default_rng(4)
    stable = [
        series_of(250e6 + random.normal(0, 2e4, X.size), X, process="DataLoader worker 0"),
        series_of(
            1e6 + random.normal(0, 30, X.size),
            X,
            role=Role.OBJECTS,
            metric="python_blocks",
            process="DataLoader worker 0",
            unit=Unit.COUNT,
        ),
    ]
    tree = series_of(600e6 + 40e3 * X + random.normal(0, 1e5, X.size), X, process="tree")
    found = _judged(0.7 * GROWS, others=(*stable, tree))
    assert found.verdict is Verdict.INCONCLUSIVE
    grown = series_of(600e6 + 90e3 * X + random.normal(0, 1e5, X.size), X, process="tree")
    assert _judged(0.7 * GROWS, others=(*stable, grown)).verdict is Verdict.LEAK


def test_ten_megabytes_a_step_are_no_garbage_of_a_few_objects() -> None:
    assert _judged(0.7 * GROWS, grows_bytes=1e7).verdict is Verdict.LEAK
