"""One garbage collection has freed all that had grown, and as much has grown since."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.decision.builders import Asked, asked, every, malloc
from memory_series import noisy

from memdiag.values.measurements import Role, Series, Unit
from memdiag.values.verdict import Side, Verdict

STEPS = np.arange(300.0)
AT = 140
PER_STEP = 200e3


def counter(metric: str, y: np.ndarray) -> Series:
    return every(5, y[::5], metric=metric, role=Role.EVENTS, unit=Unit.COUNT)


def beside(*, freed_at: int = AT, kept: float = 0.0, grows: float = 1.0) -> Asked:
    """Malloc that falls at step 140. freed_at: when the collector freed objects; kept: part of the
    growth that stays; grows: how fast it grows again."""
    since = STEPS - AT
    teeth = np.where(since < 0, (1 - kept) * STEPS, (1 - kept) * grows * since)
    return asked(
        "collected",
        malloc(noisy(140e6 + PER_STEP * (teeth + kept * STEPS), 1e-5)),
        every(1, noisy(np.where(STEPS < 100, 500e6 + 1e6 * STEPS, 600e6), 1e-4, 1)),
        counter("gc_full_freed_objects", np.full(300, 33.0)),
        counter("gc_young_freed_objects", np.where(freed_at > STEPS, 8681.0, 9559.0)),
    )


def test_a_second_tooth_like_the_first_is_no_doubt() -> None:
    found = beside()
    assert found.sides == {Side.ACROSS}
    assert found.verdicts == (Verdict.WARMUP, Verdict.INCONCLUSIVE)
    assert found.of_first == (Verdict.STABLE, Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(
    "otherwise",
    [{"freed_at": 60}, {"kept": 0.3}, {"grows": 2.0}],
    ids=["freed_at_another_time", "some_is_left", "grows_by_more"],
)
def test_other_falls_show_nothing(otherwise: dict[str, float]) -> None:
    found = beside(**otherwise)  # type: ignore[arg-type]
    assert not found.sides
    assert found.of_first[0] is not Verdict.STABLE
