"""Objects in cycles wait for Python's collector, and grow as a leak does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from analysis.decision.builders import Asked, asked, every, python_blocks
from memory_series import noisy

from memdiag.analysis.diagnose import judge
from memdiag.values.holders import Holder, Name, ProcessHolders, Size
from memdiag.values.measurements import Recording, Role, Series, Unit
from memdiag.values.verdict import Side, Verdict

STEPS = 6.0 * np.arange(200)


def counters(**values: np.ndarray) -> list[Series]:
    """What Python's collector has done."""
    return [
        every(6, y, metric=f"gc_{name}", role=Role.EVENTS, process="main", unit=Unit.COUNT)
        for name, y in values.items()
    ]


def beside(**values: np.ndarray) -> Asked:
    """Pages and blocks of Python that grow, by 40 KB and 85 of them a step."""
    pages = noisy(350e6 + 40e3 * STEPS, 2e-4)
    blocks = noisy(1.25e6 + 85 * STEPS, 1e-4, 1)
    grown = python_blocks(blocks, x=STEPS, process="main")
    first = every(6, pages, process="main")
    return asked("uncollected_garbage", first, grown, *counters(**values))


def test_growth_beside_much_young_garbage_is_no_leak() -> None:
    """Figures that are drawn and closed, sixty objects of each step in cycles."""
    never = {"full_collections": np.full(200, 5.0), "full_freed_objects": np.full(200, 23.0)}
    found = beside(**never, young_freed_objects=1e4 + 60 * STEPS)
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_growth_that_full_collections_did_not_free_is_one() -> None:
    """Four of them, and the figures are still there."""
    seen = {"full_collections": 5 + STEPS // 300, "full_freed_objects": np.full(200, 23.0)}
    found = beside(**seen, young_freed_objects=1e4 + 60 * STEPS)
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_growth_goes_on_after_a_full_collection_that_freed_as_much() -> None:
    """Blocks fall back to where they were, and rise again; of pages nothing is returned."""
    fell = STEPS >= 600
    blocks = 1.25e6 + 85 * np.where(fell, STEPS - 600, STEPS)
    told = {"full_collections": 5.0 + fell, "full_freed_objects": 23 + 13e3 * fell}
    found = asked(
        "uncollected_garbage",
        every(6, noisy(350e6 + 40e3 * STEPS, 2e-4), process="main"),
        python_blocks(noisy(blocks, 1e-4, 1), x=STEPS, process="main"),
        *counters(**told, young_freed_objects=1e4 + 60 * STEPS),
    )
    assert found.of_first == (Verdict.INCONCLUSIVE, Verdict.LEAK)


@pytest.mark.parametrize(
    ("first_name", "verdict"), [("global", Verdict.LEAK), ("unreached", Verdict.INCONCLUSIVE)]
)
def test_what_names_of_the_program_keep_is_no_garbage(first_name: str, verdict: Verdict) -> None:
    """Ten lists a second of 40 KB each, and as much young garbage as in a job that keeps none."""
    steps = np.arange(0.0, 1200.0, 100.0)
    sizes = tuple(Size(at_s=0.1 * step, step=int(step), size=step) for step in steps)
    kept = Holder(
        path=(Name(kind=first_name, name="history"),),
        unit="items",
        sizes=sizes,
        bytes_per_unit=40e3,
    )
    found = ProcessHolders(pid=1, process="main", walks=12, last_s=110.0, holders=(kept,))
    never = {"full_collections": np.full(200, 5.0), "full_freed_objects": np.full(200, 23.0)}
    series = (
        replace(every(6, noisy(350e6 + 40e3 * STEPS, 2e-4), process="main"), at_s=0.1 * STEPS),
        python_blocks(noisy(1.25e6 + 85 * STEPS, 1e-4, 1), x=STEPS, process="main"),
        *counters(**never, young_freed_objects=1e4 + 60 * STEPS),
    )
    assert judge(Recording(source="test", series=series, holders=(found,))).verdict is verdict
