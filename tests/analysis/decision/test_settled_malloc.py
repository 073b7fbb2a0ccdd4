"""Pages that grew as memory in use did, and since then no more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from analysis.decision.builders import MB, Asked, asked, every, malloc
from memory_series import noisy

from memdiag.analysis.diagnose import judge
from memdiag.analysis.policy import DEFAULT
from memdiag.recording.read import read
from memdiag.values.measurements import Role
from memdiag.values.verdict import Verdict

RUNS = Path(__file__).resolve().parents[3] / "fixtures" / "runs"

STEPS = np.arange(600.0)


def beside_a_cache(until: float) -> Asked:
    """A cache fills for 468 steps; the pages grow as fast, until so many."""
    cache = malloc(noisy(120e6 + MB * np.minimum(STEPS, 468), 1e-5))
    pages = noisy(350e6 + 1.1 * MB * np.minimum(STEPS, until), seed=7)
    return asked("settled_malloc", every(1, pages), cache)


def test_pages_of_a_cache_that_is_full_are_no_leak() -> None:
    """A replay buffer that is full: its pages go on rising for a while, by holes.

    (That USS is bounded by what malloc and Python's allocator hand out shows it, too.)
    """
    recording = read(str(RUNS / "healthy_replay_buffer.csv"))
    off = replace(DEFAULT, off=frozenset({"settled_malloc", "bounded_by"}))
    assert judge(recording).verdict is not Verdict.LEAK
    assert judge(recording, off).verdict is Verdict.LEAK


def test_pages_that_go_on_after_it_are_one() -> None:
    """Something else than the cache grows as well."""
    found = beside_a_cache(600)
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_pages_that_go_on_as_the_holes_of_malloc_do_are_none() -> None:
    """A window of tensors is full, and what replaces the old ones fits badly."""
    cache = malloc(noisy(120e6 + MB * np.minimum(STEPS, 468), 1e-5))
    free = every(1, 9e6 + 1.1 * MB * np.maximum(STEPS - 468, 0), role=Role.HOLES)
    pages = noisy(350e6 + 1.1 * MB * STEPS, seed=7)
    found = asked(
        "settled_malloc", every(1, pages), cache, replace(free, metric="malloc_free_bytes")
    )
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)
