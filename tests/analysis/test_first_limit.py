"""Which limit comes first, over series of several memories."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from memory_series import until_killed

from memdiag.analysis.diagnose import diagnose
from memdiag.analysis.forecasting.first_limit import first_limit
from memdiag.capture.process.cgroup import MemoryGroup
from memdiag.values.findings import Finding, Interval, LimitHit, RecordingFinding
from memdiag.values.measurements import Axis, AxisKind, Limit, Recording, Role, Series, Unit
from memdiag.values.verdict import Verdict

MIB = 1 << 20
STEPS = 600
CARD = Limit(name="GPU 0", value_bytes=2048 * MIB, roles=frozenset({Role.DEVICE}))
CONTAINER = Limit(name="cgroup", value_bytes=8192 * MIB, roles=frozenset({Role.RESIDENT}))
ROLES = {"rss_bytes": Role.RESIDENT, "vram_bytes": Role.DEVICE}


def series(metric: str, growth: float, process: str = "tree") -> Series:
    """1 GiB with noise, growing by `growth` MiB per step of 0.1 s."""
    x = np.arange(STEPS, dtype=float)
    noise = np.random.default_rng(len(metric)).normal(0, 1, STEPS)
    return Series(
        metric=metric,
        column=metric,
        role=ROLES[metric],
        unit=Unit.BYTES,
        axis=Axis(name="step", kind=AxisKind.STEP),
        x=x,
        y=MIB * (1024 + growth * x + noise),
        process=process,
        at_s=x * 0.1,
    )


def found(*limits: Limit, rss: float, vram: float) -> RecordingFinding:
    both = (series("rss_bytes", rss), series("vram_bytes", vram))
    return diagnose(Recording(source="test", series=both, limits=limits))


def test_the_first_limit_is_of_whichever_memory_runs_out_first() -> None:
    finding = found(CARD, CONTAINER, rss=2.0, vram=1.0)
    first = finding.first_limit
    assert first is not None
    assert (first.limit, finding.series[first.series].metric) == ("GPU 0", "vram_bytes")
    assert first.at_x.low <= 1024 <= first.at_x.high
    assert first.left_s is not None
    assert first.left_s.value == pytest.approx((first.at_x.value - STEPS + 1) * 0.1)
    assert first.left_s.low <= first.left_s.value <= first.left_s.high
    assert first.confidence == finding.series[first.series].confidence
    assert first.rival == ""


def test_the_tighter_of_two_limits_of_one_memory_is_first() -> None:
    looser = replace(CONTAINER, name="host RAM", value_bytes=9000 * MIB)
    first = found(looser, CONTAINER, rss=2.0, vram=0.0).first_limit
    assert first is not None
    assert first.limit == "cgroup"


def test_a_limit_of_other_memory_that_may_come_before_is_named() -> None:
    at = STEPS + 424  # where the card is full
    near = replace(CONTAINER, value_bytes=(1024 + 2 * at) * MIB)
    first = found(CARD, near, rss=2.0, vram=1.0).first_limit
    assert first is not None
    assert {first.limit, first.rival} == {"GPU 0", "cgroup"}


def test_what_stays_reaches_none() -> None:
    assert found(CARD, CONTAINER, rss=0.0, vram=0.0).first_limit is None


def test_a_limit_for_each_process_is_none_for_their_sum() -> None:
    each = replace(CONTAINER, per_process=True)
    assert found(each, rss=2.0, vram=0.0).first_limit is None
    alone = diagnose(
        Recording(source="t", series=(series("rss_bytes", 2.0, "main"),), limits=(each,))
    )
    assert alone.first_limit is not None


def test_a_growth_that_may_stop_is_no_sure_end() -> None:
    leak = next(f for f in found(CARD, rss=0.0, vram=1.0).series if f.limit_hits)
    hit = replace(leak.limit_hits[0], at_x=Interval(value=1024, low=900, high=math.inf))
    doubt: Finding = replace(leak, verdict=Verdict.INCONCLUSIVE, limit_hits=(hit,))
    first = first_limit([doubt], Verdict.INCONCLUSIVE)
    assert first is not None
    assert first.confidence is None
    assert first.left_s is not None
    assert first.left_s.high == math.inf
    # A leak goes before it, though its limit is farther off.
    far = replace(leak, limit_hits=(LimitHit(limit="far", limit_bytes=1, at_x=hit.at_x, in_s=9e9),))
    later = first_limit([doubt, far], Verdict.LEAK)
    assert later is not None
    assert later.limit == "far"
    # Nobody asks where a doubt may end beside a memory that settled, or one that may not grow.
    assert first_limit([doubt], Verdict.WARMUP) is None
    vague = replace(doubt, growth_per_x=Interval(value=1.0, low=-9.0, high=11.0))
    assert first_limit([vague], Verdict.INCONCLUSIVE) is None


@pytest.mark.parametrize("seed", range(8))
def test_the_end_of_a_leak_in_a_container_is_foretold_from_half_way_on(
    tmp_path: Path, seed: int
) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    inner = tmp_path / "job"
    inner.mkdir()
    (inner / "memory.max").write_text(f"{4 << 30}\n")
    found = MemoryGroup(levels=(inner, tmp_path), version=2).limit()
    assert found is not None
    tightest, _ = found
    limit = replace(CONTAINER, value_bytes=tightest)
    whole, killed = until_killed(seed, tightest)
    for part in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        seen = slice(None, int(part * killed))
        assert whole.at_s is not None
        cut = replace(whole, x=whole.x[seen], y=whole.y[seen], at_s=whole.at_s[seen])
        finding = diagnose(Recording(source="test", series=(cut,), limits=(limit,)))
        known = {Verdict.LEAK} if part > 0.75 else {Verdict.LEAK, Verdict.INCONCLUSIVE}
        assert finding.series[0].verdict in known, part
        assert finding.first_limit is not None, part
        assert abs(finding.first_limit.at_x.value - killed) <= 0.25 * killed, part


def test_the_rate_of_pages_that_were_read_often_is_taken() -> None:
    """PSS takes long to read, and so rises by a few steps of a tenth of the readings."""
    often = found(CONTAINER, rss=2.0, vram=0.0).series[0]
    hit = often.limit_hits[0]
    sooner = replace(hit, at_x=Interval(value=700.0, low=650.0, high=4000.0), in_s=10.0)
    rarely = replace(
        often, metric="pss_bytes", role=Role.PROPORTIONAL, samples=28, limit_hits=(sooner,)
    )
    first = first_limit((rarely, often), Verdict.LEAK)
    assert first is not None
    assert first.series == 1
    assert first_limit((rarely,), Verdict.LEAK) is not None
