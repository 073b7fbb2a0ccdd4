"""A series that has the same readings as another has its verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from analysis.decision.builders import asked, every
from memory_series import noisy

from memdiag.recording.read import read
from memdiag.values.measurements import Series, Unit
from memdiag.values.verdict import Side, Verdict

PASTED = Path(__file__).parents[3] / "fixtures" / "documents" / "pasted"


def percent(y: np.ndarray, **more: object) -> Series:
    """Rounded to 0.1."""
    about = {"metric": "rss_percent", "unit": Unit.PERCENT, "resolution": 0.1}
    return every(1, np.round(y, 1), **{**about, **more})


def test_rounded_percent_of_memory_that_settled_has_settled() -> None:
    found = asked("same_readings", *read(str(PASTED / "share_of_memory.csv")).series)
    assert Side.ACROSS in found.sides
    assert found.verdicts == (Verdict.WARMUP, Verdict.INCONCLUSIVE)


def test_percent_that_grows_on_its_own_is_not_settled_by_memory_beside_it() -> None:
    steps = np.arange(350.0)
    resident = noisy(4e9 + 1.4e10 * (1 - np.exp(-steps / 40)), 0.004)
    own = 10 + 0.05 * steps + np.random.default_rng(3).normal(0, 0.05, steps.size)
    found = asked("same_readings", percent(own), every(1, resident))
    assert not found.sides
    assert found.of_first[0] not in {Verdict.WARMUP, Verdict.STABLE}
