"""Min-max decimation: a long series in few points that keep its peaks and floors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats, Ints


def extremes(values: Floats, most: int) -> Ints:
    """Indexes of the points to keep, ascending: all, or of `most / 2` equal stretches the least and
    the greatest value of each, and both ends.

    values: shape (n,), finite.
    """
    n = len(values)
    if n <= most:
        return np.arange(n)
    edges = np.linspace(0, n, most // 2 + 1).astype(int)
    first, last = edges[:-1], edges[1:] - 1
    # The row of a shorter stretch repeats its last value, which argmin and argmax then ignore.
    index = np.minimum(first[:, None] + np.arange(np.diff(edges).max()), last[:, None])
    rows = values[index]
    found = np.concatenate(([0, n - 1], first + rows.argmin(axis=1), first + rows.argmax(axis=1)))
    found.sort()
    different: Ints = found[np.append(True, found[1:] != found[:-1])]  # (faster than np.unique)
    return different
