"""Growth since the last bend of the curve."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.verdict import Side, Verdict

LEVEL = np.full(262, 4e9)


def test_growth_after_a_long_plateau_is_proposed() -> None:
    """A cache that is switched on late and never emptied: 20 MB a reading."""
    growing = LEVEL + 20 * MB * np.maximum(np.arange(262.0) - 250, 0)
    found = asked("last_regime", every(10, noisy(growing, 0.005)))
    assert found.sides == {Side.FOR_LEAK}
    assert found.verdicts == (Verdict.LEAK, Verdict.INCONCLUSIVE)


def test_a_level_with_noise_proposes_nothing() -> None:
    """The same training without that cache."""
    found = asked("last_regime", every(10, noisy(LEVEL, 0.005)))
    assert found.sides == {Side.NOT_CONSIDERED}
    assert found.verdicts == (Verdict.STABLE, Verdict.STABLE)
