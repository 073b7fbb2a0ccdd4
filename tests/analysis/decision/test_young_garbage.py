"""Few objects in cycles, with large tensors, wait for Python's collector."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.decision.builders import Asked, asked, every, malloc
from memory_series import noisy

from memdiag.values.measurements import Role, Series, Unit
from memdiag.values.verdict import Side, Verdict

STEPS = np.arange(300.0)
LOOKS = 50.0 * np.arange(6)
PER_STEP = 400e3


def looks(metric: str, y: np.ndarray, process: str = "main") -> Series:
    unit = Unit.BYTES if metric.endswith("_bytes") else Unit.COUNT
    role = Role.HOLES if metric.endswith("_bytes") else Role.EVENTS
    return every(50, y, metric=metric, role=role, process=process, unit=unit)


def beside(
    unreachable: float,
    *,
    enabled: bool = True,
    collected: float = 0.0,
    process: str = "main",
    pages_per_step: float = PER_STEP,
) -> Asked:
    """Malloc and pages that grow by 400 KB a step, and this part of it that nothing refers to."""
    grown = malloc(noisy(120e6 + PER_STEP * STEPS, 1e-5), process=process)
    pages = every(1, noisy(350e6 + pages_per_step * STEPS, 2e-4, 1), process=process)
    tree = every(1, noisy(900e6 + PER_STEP * STEPS, 1e-4, 2), process="tree")
    return asked(
        "young_garbage",
        grown,
        pages,
        *([] if process == "main" else [tree, every(1, noisy(np.full(300, 5e8), 2e-4, 3))]),
        looks("gc_unreachable_bytes", unreachable * PER_STEP * LOOKS, process),
        looks("gc_enabled", np.full(6, float(enabled)), process),
        looks("gc_full_collections", 5.0 + collected * np.arange(6), process),
    )


@pytest.mark.parametrize("process", ["main", "DataLoader worker 0"])
def test_growth_that_nothing_refers_to_is_open(process: str) -> None:
    found = beside(0.9, process=process)
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_pages_that_grow_by_the_garbage_and_as_much_between_it_are_open() -> None:
    found = beside(0.7, pages_per_step=1.8 * PER_STEP)
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_pages_that_grow_much_faster_than_malloc_leak_beside_the_garbage() -> None:
    assert beside(0.9, pages_per_step=4 * PER_STEP).verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_a_leak_beside_some_garbage_is_one() -> None:
    found = beside(0.2)
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_garbage_that_is_never_collected_is_a_leak() -> None:
    assert beside(0.9, enabled=False).verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_a_collector_that_the_program_calls_by_itself_is_waited_for() -> None:
    found = beside(0.9, enabled=False, collected=1.0)
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)
