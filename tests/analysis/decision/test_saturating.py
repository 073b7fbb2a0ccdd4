"""A climb that levels off is over when its ceiling is near."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every, malloc, python_blocks
from memory_series import noisy, series_of

from memdiag.values.verdict import Side, Verdict

STEPS = np.arange(300.0)


def test_a_pool_that_has_nearly_reached_its_ceiling_is_a_warm_up() -> None:
    """An allocator that finds its largest block sizes, fewer of them all the time."""
    found = asked("saturating", every(1, noisy(2e9 - 1e9 * np.exp(-STEPS / 60))))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.WARMUP, Verdict.INCONCLUSIVE)


def test_a_line_has_no_ceiling() -> None:
    """Outputs that are kept with their graphs."""
    found = asked("saturating", every(10, noisy(2e9 + 5 * MB * STEPS)))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)


def test_the_end_of_a_climb_that_is_nearly_over_is_no_doubt() -> None:
    """Twenty readings of a pool, the last of which hardly rise."""
    y = 6e9 - 6e8 * np.exp(-np.arange(20) / 5)
    found = asked("saturating", every(10, noisy(y, seed=2)))
    assert found.sides == {Side.FOR_STABLE}
    assert found.verdicts == (Verdict.WARMUP, Verdict.INCONCLUSIVE)


def test_a_rest_after_a_climb_that_slowed_down_is_its_end() -> None:
    """A pass over a dataset that is cached, then an evaluation, and some steps of the next pass."""
    x = [0, 3, 5, 8, 12, 15, 17, 19, 23, 24, 26, 31, 34, 37]
    y_mb = [328.3, 332.2, 335.4, 339.6, 344.9, 348.6, 350.8, 354.0, 359.1, 360.3, 363.3]
    y_mb += [369.1, 373.5, 377.2, 382.2, 382.2, 382.4, 382.4, 382.6, 382.3, 382.3, 382.4, 382.2]
    x += [101, 105, 107, 109, 110, 114, 115, 117, 118]
    found = asked("saturating", series_of(MB * np.array(y_mb), np.array(x, dtype=float)))
    assert found.sides == {Side.FOR_STABLE}
    assert found.verdicts == (Verdict.WARMUP, Verdict.INCONCLUSIVE)


def test_a_climb_that_is_too_small_to_see_is_no_warm_up() -> None:
    """The same curve by a hundredth of the level: some runs of a program show it, others do not."""
    y = 4e9 - 4e7 * np.exp(-STEPS / 80)
    found = asked("saturating", malloc(noisy(y, share=0.00002)))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.STABLE, Verdict.INCONCLUSIVE)


def test_a_buffer_that_fills_by_chance_has_nearly_reached_its_ceiling() -> None:
    """Of a buffer of lists, those that are in it twice are replaced one by one."""
    steps, random = np.linspace(0, 1460, 52), np.random.default_rng(75)
    replaced = np.sort(random.exponential(420, 170))
    found = asked(
        "saturating", python_blocks(1.13e6 + 257 * np.searchsorted(replaced, steps), x=steps)
    )
    assert found.verdicts == (Verdict.WARMUP, Verdict.INCONCLUSIVE)
