"""Min-max decimation: a long series in few points that keep its peaks and floors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats, Ints


def extremes(values: Floats, most: int) -> Ints:
    """Indexes of the points to keep, ascending: all, or of at most `most / 2` equal stretches the
    least and the greatest value of each, and both ends.

    values: shape (n,), finite.
    """
    n = len(values)
    if n <= most:
        return np.arange(n)
    width = -(-n // (most // 2))
    first = np.arange(0, n, width)
    # The last row repeats the last value, which argmin and argmax then ignore.
    padded = np.full(len(first) * width, values[-1])
    padded[:n] = values
    rows = padded.reshape(-1, width)
    kept = np.zeros(n, dtype=bool)
    kept[[0, n - 1]] = True
    kept[first + rows.argmin(axis=1)] = True
    kept[first + rows.argmax(axis=1)] = True
    return np.flatnonzero(kept)
