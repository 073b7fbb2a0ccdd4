"""Two series with the same readings have one verdict (share_of_memory.csv of the pasted logs).

Others have their own.
"""

from __future__ import annotations

import numpy as np
from memory_series import judge, noisy, series_of

from memdiag.values.measurements import Role, Unit
from memdiag.values.verdict import Verdict

RNG = np.random.default_rng(3)
STEPS = np.arange(350.0)
RESIDENT = noisy(4e9 + 1.4e10 * (1 - np.exp(-STEPS / 40)), 0.004)


def verdicts_of(resident: np.ndarray, percent: np.ndarray) -> list[Verdict]:
    share = {"metric": "rss_percent", "unit": Unit.PERCENT, "resolution": 0.1}
    found = judge(
        series_of(resident),
        series_of(np.round(percent, 1), role=Role.RESIDENT, **share),
    )
    return [one.verdict for one in found.series]


def test_percent_that_grows_on_its_own_is_not_settled_by_memory_beside_it() -> None:
    percent = 10 + 0.05 * STEPS + RNG.normal(0, 0.05, STEPS.size)
    assert verdicts_of(RESIDENT, percent)[1] not in {Verdict.WARMUP, Verdict.STABLE}
