"""Min-max decimation: a long series in few points that keep its peaks and floors."""

from __future__ import annotations

from itertools import pairwise
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
    kept = {0, n - 1}
    for first, end in pairwise(np.linspace(0, n, most // 2 + 1).astype(int).tolist()):
        stretch = values[first:end]
        kept |= {first + int(stretch.argmin()), first + int(stretch.argmax())}
    return sorted(kept)
