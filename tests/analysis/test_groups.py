from dataclasses import replace

import numpy as np
import pytest

from memdiag.analysis.groups.holm import adjusted
from memdiag.analysis.groups.judge_group import judge_group
from memdiag.values.groups import GroupKind, Member
from memdiag.values.verdict import Verdict

STEPS = np.linspace(0, 1000, 48)


def member(
    rank,
    rng,
    *,
    leak=0.0,
    verdict=None,
    node="",
    metric="rss_bytes",
    role="resident",
    until=1000.0,
    in_s=None,
):
    y = 3e9 + 3e8 * (1 - np.exp(-STEPS / 40)) + leak * STEPS + rng.normal(0, 2e6, len(STEPS))
    found = verdict or (Verdict.LEAK if leak else Verdict.WARMUP)
    return Member(
        rank=str(rank),
        node=node,
        metric=metric,
        role=role,
        unit="bytes",
        axis="step",
        verdict=found,
        growth_per_x=leak,
        limit_name="host RAM" if in_s else "",
        limit_in_s=in_s,
        points=tuple((x, v) for x, v in zip(STEPS, y, strict=True) if x <= until),
    )


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_holm_is_as_in_the_paper():
    assert adjusted([0.01, 0.04, 0.03]) == [0.03, 0.06, 0.06]
    assert adjusted([]) == []
    assert adjusted([0.9, 0.8]) == [1.0, 1.0]


def test_one_rank_that_leaks_is_named(rng):
    found = judge_group("j", [member(n, rng, leak=1e5 * (n == 5)) for n in range(16)])
    assert found.leaking == ("5",)
    assert found.kind is GroupKind.ONE
    assert found.growth_per_x == pytest.approx(1e5, rel=0.1)
    assert found.p_value < 1e-4


def test_rank_0_alone_is_a_kind_of_its_own(rng):
    found = judge_group("j", [member(n, rng, leak=1e5 * (n == 0)) for n in range(8)])
    assert found.kind is GroupKind.FIRST


def test_a_rank_that_is_open_by_itself_is_decided_by_the_others(rng):
    ranks = [member(n, rng) for n in range(15)]
    ranks.append(member(15, rng, leak=1e5, verdict=Verdict.INCONCLUSIVE))
    assert judge_group("j", ranks).leaking == ("15",)


def test_a_rank_called_leaking_that_does_what_the_others_do_is_not(rng):
    ranks = [member(n, rng) for n in range(15)] + [member(15, rng, verdict=Verdict.LEAK)]
    found = judge_group("j", ranks)
    assert found.leaking == ()
    assert found.verdict is Verdict.WARMUP


@pytest.mark.parametrize(
    ("rates", "kind"),
    [([1e5] * 8, GroupKind.ALL), (range(60000, 600000, 70000), GroupKind.ALL_DIFFER)],
)
def test_a_leak_of_all_ranks_is_one_of_the_code_or_of_what_they_are_given(rng, rates, kind):
    found = judge_group("j", [member(n, rng, leak=rate) for n, rate in enumerate(rates)])
    assert len(found.leaking) == len(list(rates))
    assert found.kind is kind


def test_the_ranks_of_one_node(rng):
    ranks = [member(n, rng, leak=1e5 * (n // 4 == 1), node=f"n{n // 4}") for n in range(16)]
    found = judge_group("j", ranks)
    assert found.leaking == ("4", "5", "6", "7")
    assert found.kind is GroupKind.NODE


def test_missing_ranks_and_stragglers_are_named(rng):
    ranks = [member(n, rng, until=700 if n == 2 else 1000) for n in range(8) if n != 3]
    found = judge_group("j", ranks, world_size=9)
    assert found.missing == ("3", "8")
    assert found.behind == ("2",)
    assert found.leaking == ()
    seldom = [member(n, rng, metric="uss_bytes", role="unique", until=600) for n in range(2)]
    assert judge_group("j", ranks + seldom).behind == ("2",)


def test_the_first_limit_is_that_of_the_rank_that_leaks(rng):
    ranks = [member(n, rng, leak=1e5 * (n == 1), in_s=50.0 if n == 0 else 90.0) for n in range(6)]
    found = judge_group("j", ranks)
    assert (found.limit_rank, found.limit_in_s) == ("1", 90.0)


def test_a_node_whose_memory_others_take_is_named(rng):
    ranks = [member(n, rng, node=f"n{n}") for n in range(6)]
    hosts = [
        member(n, rng, node=f"n{n}", metric="host_used_bytes", role="host", leak=3e5 * (n == 4))
        for n in range(6)
    ]
    found = judge_group("j", ranks + hosts)
    assert found.crowded == ("n4",)
    assert found.leaking == ()


def test_healthy_jobs_have_no_leak():
    rng = np.random.default_rng(11)
    found = [
        judge_group("j", [member(n, rng, verdict=Verdict.INCONCLUSIVE) for n in range(16)])
        for _ in range(100)
    ]
    assert sum(bool(one.leaking) for one in found) == 0


def test_two_ranks_and_ranks_without_readings(rng):
    few = [member(0, rng), member(1, rng, leak=1e5)]
    assert judge_group("j", few).leaking == ("1",)
    empty = [member(n, rng, until=-1) for n in range(3)]
    assert judge_group("j", empty).leaking == ()


def test_ranks_that_are_open_by_themselves_may_leak_together():
    rng = np.random.default_rng(5)
    steps = np.linspace(0, 5000, 48)
    ranks = []
    for n in range(12):
        y = (1 + n / 20) * 3e9 + 2e5 * steps + rng.normal(0, 3e7, len(steps))
        one = member(n, rng, verdict=Verdict.INCONCLUSIVE)
        ranks.append(replace(one, points=tuple(zip(steps, y, strict=True))))
    found = judge_group("j", ranks)
    assert len(found.leaking) == 12
    assert found.kind is GroupKind.ALL


def test_levels_of_their_own_do_not_matter():
    rng = np.random.default_rng(6)
    ranks = []
    for n in range(16):
        one = member(n, rng, leak=1e5 * (n == 3), until=700 if n % 5 == 0 else 1000)
        raised = tuple((x, y + n * 2e8) for x, y in one.points)
        ranks.append(replace(one, points=raised, verdict=Verdict.INCONCLUSIVE))
    assert judge_group("j", ranks).leaking == ("3",)


def test_the_metric_in_which_most_ranks_leak_is_named(rng):
    ranks = [member(n, rng, leak=1e5) for n in range(8)]
    more = {"metric": "uss_bytes", "role": "unique"}
    ranks += [member(n, rng, leak=1e5 * (n == 2), **more) for n in range(8)]
    found = judge_group("j", ranks)
    assert (found.metric, len(found.leaking)) == ("rss_bytes", 8)
