"""How long growth rests before it continues, predicted from its rests so far."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.stats.student_t import quantile

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


def longest_rest(lengths: Floats) -> float:
    """Length from which a rest is more likely the end of growth than one of its rests.

    lengths: of k rests after which growth continued, shape (k,), positive; the result has their
    unit. Returns 0 for fewer than two.

    Lengths are log-normal with unknown mean and variance. Without prior knowledge of these, the
    logarithm of the next one has Student's t distribution with k - 1 degrees of freedom about the
    mean, with the standard deviation times sqrt(1 + 1 / k) (Gelman et al., Bayesian Data Analysis,
    3rd edition 2013, section 3.2). The prior odds that growth continues are k to 1: it is as likely
    as not to double its number of rests (Gott, Nature 363 (1993) 315-319). So it has ended where
    P(next rest is longer) = 1 / k.
    """
    k = len(lengths)
    if k < 2:
        return 0.0
    logs = np.log(lengths)
    scale = float(np.std(logs, ddof=1)) * math.sqrt(1 + 1 / k)
    return math.exp(float(logs.mean()) + quantile(k - 1, 1 - 1 / k) * scale)
