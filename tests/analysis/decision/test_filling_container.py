"""Growth ends by itself where what keeps it is a container of a greatest length."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from analysis.decision.builders import asked, every, python_blocks
from memory_series import noisy

from memdiag.analysis.cause.fixes import fix_of
from memdiag.analysis.diagnose import judge
from memdiag.values.findings import Fix
from memdiag.values.holders import Holder, Name, ProcessHolders, Size
from memdiag.values.measurements import Limit, Recording, Role
from memdiag.values.verdict import Reason, Side, Verdict

STEPS = 6.0 * np.arange(200)
ITEM_BYTES = 40e3
LOCAL = Name(kind="local", name="replay", owner="main")


def container(bound: int | None, *path: Name, items: float = 1.0, **more: float) -> Holder:
    """A container to which `items` items are added at each step, at ten steps per second."""
    steps = np.arange(0.0, 1200.0, 100.0)
    return Holder(
        path=path or (LOCAL,),
        unit="items",
        sizes=tuple(Size(at_s=0.1 * step, step=int(step), size=items * step) for step in steps),
        bytes_per_unit=ITEM_BYTES,
        container="deque",
        bound=bound,
        **more,
    )


def recording(*holders: Holder, limit_bytes: int | None = None, role: Role = Role.RESIDENT):
    """One that grows by an item's bytes at each step, and by 85 of Python's blocks."""
    grown = noisy(350e6 + ITEM_BYTES * STEPS, 2e-4)
    found = ProcessHolders(pid=1, process="main", walks=12, last_s=110.0, holders=holders)
    series = (
        replace(every(6, grown, process="main", role=role), at_s=0.1 * STEPS),
        replace(python_blocks(1e6 + 85 * STEPS, x=STEPS, process="main"), at_s=0.1 * STEPS),
    )
    limits = ()
    if limit_bytes is not None:
        limits = (Limit(name="limit", value_bytes=limit_bytes, roles=frozenset({role})),)
    return {"series": series, "holders": (found,), "limits": limits}


def verdict_of(*holders: Holder, **more: object) -> Verdict:
    return judge(Recording(source="test", **recording(*holders, **more))).verdict


def test_a_container_that_is_not_full_yet_is_no_leak() -> None:
    """A replay buffer of 10,000 transitions after 1,200 steps; its objects grow as well."""
    given = recording(container(10_000))
    found = asked("filling_container", *given.pop("series"), **given)
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_it_is_told_which_one_when_it_is_full_and_how_long_to_record() -> None:
    judged = judge(Recording(source="test", **recording(container(10_000))))
    pages = judged.series[0]
    said = next(argument for argument in pages.trail if argument.is_decisive)
    assert pages.reason is Reason.FILLING
    assert "`replay`" in said.text
    assert said.numbers["bound"] == 10_000
    assert said.numbers["left_x"] == pytest.approx(10_000 - 1_100, rel=0.02)
    assert pages.need_more.more_x == pytest.approx(8_900 + STEPS[-1], rel=0.02)
    assert pages.need_more.more_s == pytest.approx(0.1 * pages.need_more.more_x, rel=0.02)


@pytest.mark.parametrize(
    ("limit_bytes", "verdict"), [(600_000_000, Verdict.LEAK), (900_000_000, Verdict.INCONCLUSIVE)]
)
def test_memory_that_runs_out_before_it_is_full_leaks(limit_bytes: int, verdict: Verdict) -> None:
    """398 MB after 1,200 steps, and 750 MB once it is full."""
    assert verdict_of(container(10_000), limit_bytes=limit_bytes) is verdict


def test_growth_of_which_it_is_a_small_part_leaks() -> None:
    assert verdict_of(container(10_000, items=0.2)) is Verdict.LEAK


def test_a_list_leaks_beside_a_smaller_container_that_fills() -> None:
    history = container(None, Name(kind="local", name="history", owner="main"))
    assert verdict_of(container(10_000, items=0.4), history) is Verdict.LEAK


def test_two_containers_that_fill_together_are_no_leak() -> None:
    states = container(10_000, items=0.4)
    rewards = container(20_000, Name(kind="local", name="rewards", owner="main"), items=0.3)
    assert verdict_of(states, rewards) is Verdict.INCONCLUSIVE
    assert verdict_of(states) is Verdict.LEAK


def test_containers_that_are_items_of_another_one_may_become_more() -> None:
    path = Name(kind="local", name="windows", owner="main"), Name(kind="item", name="")
    assert verdict_of(container(10_000, *path)) is Verdict.LEAK


def test_what_it_keeps_on_a_device_does_not_explain_growth_of_the_host() -> None:
    on_device = container(10_000, device_bytes_per_unit=ITEM_BYTES)
    assert verdict_of(on_device) is Verdict.LEAK
    assert verdict_of(on_device, role=Role.DEVICE_ALLOCATED) is Verdict.INCONCLUSIVE


def test_the_fix_of_what_has_a_bound_is_not_a_bound() -> None:
    assert fix_of(container(10_000)) is Fix.SMALLER_BOUND
    assert fix_of(container(None)) is Fix.BOUND_SEQUENCE
