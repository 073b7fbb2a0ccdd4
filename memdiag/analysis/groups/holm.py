"""P-values of several tests together."""

from __future__ import annotations

from collections.abc import Sequence


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjust for the number of tests by Holm's procedure (Scand. J. Statist. 6 (1979) 65-70).

    To call those at most `a` significant keeps the probability of one wrong call at or below `a`,
    for any dependence between the tests.
    """
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    found = [1.0] * len(p_values)
    so_far = 0.0
    for number, at in enumerate(order):
        so_far = max(so_far, (len(p_values) - number) * p_values[at])
        found[at] = min(1.0, so_far)
    return found
