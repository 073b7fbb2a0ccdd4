"""Memory that falls steadily is not called stable if its name may say that it is free memory."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict

FALLS = noisy(np.linspace(50_000 * MB, 30_000 * MB, 400), 1e-3)


def test_a_steady_fall_under_a_name_with_an_unknown_word_is_inconclusive() -> None:
    found = asked("may_be_free", every(1, FALLS, may_be_free=True))
    assert found.sides == {Side.AGAINST_STABLE}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.STABLE)


def test_a_flat_series_with_such_a_name_is_stable() -> None:
    flat = noisy(np.full(400, 500 * MB), 1e-3)
    found = asked("may_be_free", every(1, flat, may_be_free=True))
    assert not found.sides
    assert found.verdicts == (Verdict.STABLE, Verdict.STABLE)


def test_one_fall_at_the_start_is_stable() -> None:
    falls_once = noisy(np.where(np.arange(400) < 40, 900 * MB, 500 * MB), 1e-3)
    found = asked("may_be_free", every(1, falls_once, may_be_free=True))
    assert not found.sides
