"""Address space is no memory, however much of it is mapped."""

from __future__ import annotations

import numpy as np
from analysis.decision.builders import MB, asked, every
from memory_series import noisy

from memdiag.values.measurements import Role
from memdiag.values.verdict import Side, Verdict

GROWING = noisy(4e9 + 10 * MB * np.arange(1000.0))


def test_address_space_that_grows_is_no_leak() -> None:
    """An allocator that maps ahead of what it needs."""
    found = asked("not_a_meter", every(1, GROWING, role=Role.VIRTUAL, metric="vms_bytes"))
    assert found.sides == {Side.AGAINST_LEAK}
    assert found.verdicts == (Verdict.INCONCLUSIVE, Verdict.LEAK)


def test_pages_that_grow_as_much_are_one() -> None:
    """A list of batches that is never cleared."""
    found = asked("not_a_meter", every(1, GROWING))
    assert not found.sides
    assert found.verdicts == (Verdict.LEAK, Verdict.LEAK)
