"""What the processes of a job say to each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from memory_series import judge, noisy, series_of
from report import diagnoses
from report.diagnoses import interval

from memdiag.analysis.cross_series.evidence import evidence
from memdiag.analysis.decision.across.decide import correct, decide
from memdiag.values.findings import EvidenceKind, Finding
from memdiag.values.measurements import AxisKind, Role, Series, Unit
from memdiag.values.verdict import Reason, Verdict


def of(process: str, growth_bytes_per_step: float) -> Finding:
    trace = [(float(x), 1e9 + growth_bytes_per_step * x) for x in range(100)]
    leaks = growth_bytes_per_step > 1000
    verdict = Verdict.LEAK if leaks else Verdict.STABLE
    found = diagnoses.series(trace, verdict, Reason.OUTLASTS_WARMUP if leaks else Reason.FLAT)
    growth = interval(growth_bytes_per_step)
    return replace(found, process=process, growth_per_x=growth)


def alone(*findings: Finding) -> list[str]:
    told = evidence(findings, 0)
    return [e.subject for e in told if e.kind is EvidenceKind.ONE_PROCESS]


def test_a_rank_that_grows_alone_is_named() -> None:
    job = [of("rank1", 5e5), of("rank0", 200.0), of("rank2", -9e5), of("tree", 5e5)]
    assert alone(*job) == ["rank1 rss_bytes"]


def test_a_stable_process_does_not_grow_whatever_its_last_readings_come_to() -> None:
    stable = replace(of("rank0", 0.0), growth_per_x=interval(4e5, 7e6))
    assert alone(of("rank1", 5e5), stable, of("tree", 9e5)) == ["rank1 rss_bytes"]


@pytest.mark.parametrize(
    "job",
    [
        [of("rank1", 5e5), of("rank0", 4e5), of("tree", 9e5)],  # both
        [of("main", 5e5), of("tree", 5e5)],  # there is no other
        [of("tree", 5e5), of("main", 5e5), of("worker", 1.0)],  # it is not told of a process
        [of("rank1", 10.0), of("rank0", 0.0)],  # nothing leaks
    ],
)
def test_none_is_named_where_none_is_alone(job: list[Finding]) -> None:
    assert alone(*job) == []


def test_an_exact_meter_speaks_before_pages_that_grow_by_holes() -> None:
    """A leak of 1 KB per step that raises RSS by 11: the rate to be told is the first."""
    borrowed = {"verdict": Verdict.LEAK, "reason": Reason.EXACT_METRIC}
    pages = replace(of("main", 11e3), **borrowed)
    tree = replace(of("tree", 9e3), **borrowed)
    private = replace(of("main", 33e3), metric="uss_bytes", role=Role.UNIQUE, **borrowed)
    exact = replace(of("main", 1400.0), metric="malloc_bytes", role=Role.IN_USE)
    findings = (pages, tree, private, exact)
    assert decide(findings)[2] == findings.index(exact)


def test_pages_that_are_read_often_tell_the_rate() -> None:
    """RSS is read twenty times as often as USS, whose rate may be twice as large by chance."""
    private = replace(of("main", 2e5), metric="uss_bytes", role=Role.UNIQUE, samples=26)
    findings = (private, replace(of("main", 1e5), samples=550))
    assert decide(findings)[2] == 1


def test_a_small_leak_of_one_process_does_not_hide_a_large_one_of_another() -> None:
    small = replace(of("main", 4e3), metric="malloc_bytes", role=Role.IN_USE)
    findings = (small, of("main", 5e3), of("helper 12", 3e5), of("tree", 305e3))
    assert decide(findings)[2] == 2


def job(*, processes: Verdict, helper: Finding) -> tuple[Verdict, float, int | None]:
    """A tree that cannot be told, of two processes, and how many there were."""
    tree = replace(of("tree", 0.0), verdict=Verdict.INCONCLUSIVE, reason=Reason.RECENT_STEP)
    tree = replace(tree, latest_value=2e9)
    number = replace(of("tree", 0.0), metric="processes", role=Role.PROCESSES, verdict=processes)
    return decide(correct([tree, of("main", 0.0), helper, number]))


def test_a_doubt_about_all_processes_is_decided_by_the_verdict_of_each() -> None:
    """DataLoader workers that rise by 2 MB each once, at different times."""
    stable, doubtful = (
        of("worker 1", 0.0),
        replace(of("worker 1", 0.0), verdict=Verdict.INCONCLUSIVE),
    )
    small = replace(stable, latest_value=1e8)
    assert job(processes=Verdict.STABLE, helper=stable)[0] is Verdict.STABLE
    assert job(processes=Verdict.LEAK, helper=stable)[0] is Verdict.INCONCLUSIVE
    assert job(processes=Verdict.STABLE, helper=doubtful)[0] is Verdict.INCONCLUSIVE
    assert job(processes=Verdict.STABLE, helper=small)[0] is Verdict.INCONCLUSIVE  # others hold it


def told(*findings: Finding) -> set[EvidenceKind]:
    return {e.kind for e in evidence(findings, 0)}


def test_growth_of_pythons_objects_is_not_put_down_to_holes() -> None:
    """Python's arenas are none of malloc's, which stays stable."""
    pages = of("main", 10e3)
    malloc = replace(of("main", 28.0), metric="malloc_bytes", role=Role.IN_USE)
    assert told(pages, malloc) == {EvidenceKind.IN_USE_FLAT}
    blocks = replace(of("main", 5e3), metric="python_blocks", role=Role.OBJECTS, unit=Unit.COUNT)
    assert told(pages, malloc, blocks) == {EvidenceKind.OBJECTS_GROW}


def test_growth_that_malloc_does_not_hold_free_is_not_put_down_to_holes() -> None:
    """A file that is mapped: malloc has neither handed it out nor kept it."""
    pages = of("main", 10e3)
    malloc = replace(of("main", 28.0), metric="malloc_bytes", role=Role.IN_USE)
    free = replace(of("main", 100.0), metric="malloc_free_bytes", role=Role.HOLES)
    assert told(pages, malloc, free) == set()
    assert told(pages, malloc, replace(of("main", 8e3), metric=free.metric, role=Role.HOLES)) == {
        EvidenceKind.IN_USE_FLAT
    }


@pytest.mark.parametrize(("copied", "is_told"), [(70e6, False), (200e6, True)])
def test_pages_that_each_fork_copies_are_not_called_un_sharing(
    copied: float, *, is_told: bool
) -> None:
    """Two workers that are started anew, by PSS that is read at any age of theirs."""
    trace = tuple((float(x), 300e6 + copied * x / 99) for x in range(100))
    tree = replace(of("tree", 0.0), peak_value=1e9)
    whole = replace(
        tree,
        metric="pss_bytes",
        role=Role.PROPORTIONAL,
        verdict=Verdict.WARMUP,
        trace=trace,
        latest_value=trace[-1][1],
        peak_value=trace[-1][1],
    )
    private = replace(whole, metric="uss_bytes", role=Role.UNIQUE)
    findings = (of("main", 0.0), of("worker 0", 0.0), of("worker 1", 0.0), tree, whole, private)
    assert (EvidenceKind.UNSHARED in told(*findings)) is is_told
    at = decide(findings)[2]
    assert at is not None
    assert findings[at].metric == ("pss_bytes" if is_told else "rss_bytes")


def test_pages_that_hide_a_leak_are_told_without_the_rate_at_which_they_fall() -> None:
    x = np.arange(400.0)
    random = np.random.default_rng(5)
    malloc = series_of(
        1e8 + 500.0 * x + random.normal(0, 50, x.size), role=Role.IN_USE, metric="malloc_bytes"
    )
    pages = 3e8 + 2e6 * np.minimum(x, 40) - 1e4 * np.maximum(0, x - 40)
    rss = series_of(pages + random.normal(0, 1e4, x.size))
    found = {finding.metric: finding for finding in judge(malloc, rss).series}
    assert found["malloc_bytes"].verdict is Verdict.LEAK
    assert found["rss_bytes"].reason is Reason.EXACT_METRIC
    assert found["rss_bytes"].growth_per_x is None


def _of(process: str, y: np.ndarray, at_s: np.ndarray) -> Series:
    return series_of(y, at_s, process=process, kind=AxisKind.SECONDS, at_s=at_s)


@pytest.mark.parametrize(
    ("ended", "verdict"),
    [(True, {Verdict.STABLE, Verdict.WARMUP}), (False, {Verdict.INCONCLUSIVE})],
)
def test_doubt_about_a_process_that_has_ended_is_none_of_the_run(
    ended: bool, verdict: set[Verdict]
) -> None:
    """A compiler rose for half a minute and was gone; the job as a whole is level."""
    at = np.arange(0.0, 400, 0.5)
    noise = np.random.default_rng(3).normal(0, 2e5, len(at))
    own = slice(20, 80) if ended else slice(-60, None)
    compiler = np.zeros(len(at))
    compiler[own] = 20e6 + 3e6 * (at[own] - at[own][0])
    found = judge(
        _of("main", 800e6 + noise, at),
        _of("cc1plus", compiler[own], at[own]),
        _of("tree", 800e6 + noise + compiler, at),
    )
    assert found.verdict in verdict


@pytest.mark.parametrize("samples", [3, 40])
def test_a_worker_that_has_just_begun_anew_decides_nothing(samples: int) -> None:
    """A DataLoader starts its workers anew each epoch; the last has been there for a moment."""
    at = np.arange(0.0, 100, 0.25)
    random = np.random.default_rng(3)
    level = 800e6 + random.normal(0, 2e5, len(at))
    climb = np.linspace(210e6, 251e6, samples)
    worker = _of("DataLoader worker 0", climb, at[-samples:])
    found = judge(_of("main", level, at), worker, _of("tree", level + 250e6, at))
    assert found.verdict is Verdict.STABLE
    assert found.deciding is not None
    assert found.deciding.process != "DataLoader worker 0"


def _cache(then: float) -> tuple[Series, ...]:
    """A cache of 40 MB that is full after 2,000 of 3,000 steps; pages go on by `then` a step."""
    x = np.arange(0.0, 3000, 5)
    random = np.random.default_rng(3)
    filled = 20e3 * np.minimum(x, 2000)
    malloc = series_of(
        118e6 + filled + random.normal(0, 500, x.size),
        x,
        role=Role.IN_USE,
        metric="malloc_bytes",
        process="main",
    )
    pages = 320e6 + 1.3 * filled + then * np.maximum(0, x - 2000) + random.normal(0, 2e4, x.size)
    early = x[x < 1800]
    tensors = series_of(
        20e3 * early, early, role=Role.IN_USE, metric="tensor_bytes", process="main"
    )
    blocks = series_of(
        1e6 + random.normal(0, 30, x.size),
        x,
        role=Role.OBJECTS,
        metric="python_blocks",
        process="main",
        unit=Unit.COUNT,
    )
    return malloc, series_of(pages, x, process="main"), tensors, blocks


def test_what_grew_with_a_cache_that_is_full_since_is_no_leak() -> None:
    found = judge(*_cache(200.0))
    assert found.verdict is Verdict.WARMUP
    assert {f.metric for f in found.series if f.verdict is Verdict.LEAK} == set()


def test_pages_that_go_on_beside_a_full_cache_are_a_leak() -> None:
    assert judge(*_cache(25e3)).verdict is Verdict.LEAK


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_a_leak_unknown_to_malloc_is_none_of_the_cache_beside_it(share: float) -> None:
    x = np.arange(1500.0)
    cache = 4e8 * np.clip(np.floor(8 * x / 1100) / 8, 0, 1)
    malloc = series_of(5e8 + cache, role=Role.IN_USE, metric="malloc_bytes", process="main")
    blocks = series_of(
        np.full(x.size, 1e6),
        role=Role.OBJECTS,
        metric="python_blocks",
        process="main",
        unit=Unit.COUNT,
    )
    pages = series_of(2e9 + cache + share * 4e8 * x / x.size, process="main")
    assert judge(malloc, blocks, pages).verdict is Verdict.LEAK


def test_stable_pages_say_nothing_of_a_device() -> None:
    at = np.arange(0.0, 100, 0.25)
    level = np.full(len(at), 8e8) + np.random.default_rng(3).normal(0, 2e5, len(at))
    device = series_of(
        [10e9, 20e9, 30e9],
        at[-3:],
        role=Role.DEVICE,
        metric="vram_bytes",
        process="worker",
        kind=AxisKind.SECONDS,
    )
    found = judge(_of("main", level, at), device, _of("tree", level, at))
    assert found.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_two_workers_that_leak_both_count(share: float) -> None:
    """The rate of a leak is that of all of it."""
    steps = np.arange(800.0)
    one = noisy(3e8 + 2e5 * share * steps, seed=1)
    other = noisy(3e8 + 2e5 * (1 - share) * steps, seed=2)
    main = noisy(np.full(800, 1e9), seed=3)
    parts = {"main": main, "worker 1": one, "worker 2": other, "tree": main + one + other}
    found = judge(*(series_of(y, process=process) for process, y in parts.items())).deciding
    assert found is not None
    assert found.process == "tree"
    assert found.growth_per_x is not None
    assert found.growth_per_x.low <= 2e5 <= found.growth_per_x.high
