"""Min-max decimation: a long series in few points that keep its peaks and floors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


def extremes(values: Floats, most: int) -> list[int]:
    """Indexes of the points to keep, ascending: all, or of `most / 2` equal stretches the least and
    the greatest value of each, and both ends.

    values: shape (n,), finite.
    """
    n = len(values)
    if n <= most:
        return list(range(n))
    edges = np.linspace(0, n, most // 2 + 1).astype(int)
    widths = np.diff(edges)
    kept = [np.array([0, n - 1])]
    for width in np.unique(widths):  # two at most: all stretches of one at once
        first = edges[:-1][widths == width]
        stretches = values[first[:, None] + np.arange(width)]
        kept += [first + stretches.argmin(axis=1), first + stretches.argmax(axis=1)]
    found: list[int] = np.unique(np.concatenate(kept)).tolist()
    return found
