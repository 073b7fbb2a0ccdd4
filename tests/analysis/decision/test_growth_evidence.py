"""A run that is watched is asked again and again, and needs more evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from analysis.decision.builders import MB, every
from memory_series import noisy

from memdiag.analysis.decision.case import Context, Decision
from memdiag.analysis.decision.decide import decide
from memdiag.analysis.policy import DEFAULT
from memdiag.analysis.preprocessing.prepare import prepare
from memdiag.values.verdict import Side, Verdict

NAME = "growth_evidence"


def watched(readings: int, off: frozenset[str] = frozenset()) -> Decision:
    """What is said, while the run goes on, of 2 MB a reading, a hundred steps apart."""
    series = every(100, noisy(4e9 + 2 * MB * np.arange(readings), 1e-4))
    policy = replace(DEFAULT, off=off)
    return decide(prepare(series, policy), policy, Context(merges=0))


def sides(decision: Decision) -> set[Side]:
    return {argument.side for argument in decision.trail if argument.check == NAME}


def test_twelve_readings_of_a_run_that_goes_on_are_no_leak() -> None:
    """A finished recording of as many is called one."""
    found = watched(12)
    assert sides(found) == {Side.AGAINST_LEAK}
    assert found.verdict is Verdict.INCONCLUSIVE
    assert watched(12, frozenset({NAME})).verdict is Verdict.LEAK


def test_a_hundred_readings_of_it_are_one() -> None:
    """The same run, later."""
    found = watched(100)
    assert not sides(found)
    assert found.verdict is Verdict.LEAK
