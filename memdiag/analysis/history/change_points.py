"""Where a series of runs changes: binary segmentation by a permutation test.

The statistic of a split is that of Wilcoxon, Mann and Whitney: how far the mean rank of the runs
before it is from that of the runs after, in standard deviations. The largest one over all splits is
compared with the same of the runs in random order (Matteson and James, J. Am. Stat. Assoc. 109
(2014) 334-345, do so for another statistic; Apache Otava, arXiv 2301.03034, for performance tests).
So the noise is that of the runs themselves, and a single outlier is not a change. Both parts of a
split that is significant are split further.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.groups.holm import adjusted
from memdiag.analysis.parameters import number
from memdiag.values.history import Change, Quantity, Run, Trend

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPolicy:
    """The numbers of a change between runs."""

    error: float = number(0.01, "1", "probability that a history without a change has one")
    fewest: int = number(4, "runs", "fewest runs before and after a change")
    permutations: int = number(4999, "1", "random orders that a change is compared with")
    material: float = number(0.01, "1", "least change, over the peak of the run")


DEFAULT = HistoryPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A trend without its changes. level: what a change is compared with to see if it matters."""

    group: str
    quantity: Quantity
    metric: str
    unit: str
    axis: str
    runs: tuple[Run, ...]
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A change point: the first index after it, and its p-value."""

    at: int
    p_value: float


def trends(series: Sequence[Measured], policy: HistoryPolicy = DEFAULT) -> tuple[Trend, ...]:
    """The changes of all series, with their p-values adjusted by Holm's procedure."""
    splits = [_splits(np.array([run.value for run in one.runs]), policy) for one in series]
    p_values = iter(adjusted([split.p_value for found in splits for split in found]))
    known = [[(split.at, next(p_values)) for split in found] for found in splits]
    return tuple(
        Trend(
            group=one.group,
            quantity=one.quantity,
            metric=one.metric,
            unit=one.unit,
            axis=one.axis,
            runs=one.runs,
            changes=_changes(one, found, policy),
        )
        for one, found in zip(series, known, strict=True)
    )


def _changes(
    one: Measured, splits: Sequence[tuple[int, float]], policy: HistoryPolicy
) -> tuple[Change, ...]:
    kept = _placed(one, {at: p for at, p in splits if p <= policy.error}, policy)
    while True:
        edges = [0, *sorted(kept), len(one.runs)]
        parts = list(itertools.pairwise(edges))
        medians = [float(np.median([run.value for run in one.runs[a:b]])) for a, b in parts]
        small = [
            parts[n + 1][0]
            for n in range(len(parts) - 1)
            if abs(medians[n + 1] - medians[n]) < policy.material * one.level
        ]
        if not small:
            break
        del kept[small[0]]
    return tuple(
        Change(
            since=one.runs[parts[n][0]],
            before=medians[n - 1],
            after=medians[n],
            runs_before=parts[n - 1][1] - parts[n - 1][0],
            runs_after=parts[n][1] - parts[n][0],
            p_value=kept[parts[n][0]],
        )
        for n in range(1, len(parts))
    )


def _placed(one: Measured, splits: dict[int, float], policy: HistoryPolicy) -> dict[int, float]:
    """The splits, each where its two parts differ most: it was found before their other ends."""
    values = np.array([run.value for run in one.runs])
    edges = [0, *sorted(splits), len(values)]
    for n in range(1, len(edges) - 1):
        part = _ranks(values[edges[n - 1] : edges[n + 1]])[None, :]
        at = edges[n - 1] + policy.fewest + int(_statistics(part, policy.fewest)[0].argmax())
        splits[at] = splits.pop(edges[n])
        edges[n] = at
    return splits


def _splits(values: Floats, policy: HistoryPolicy) -> list[Split]:
    """The splits of a series, each with the p-value of its part of the series.

    The first one is always there, so that its p-value counts among the tests.
    """
    found: list[Split] = []
    left = [(0, len(values))]
    while left:
        start, end = left.pop()
        if end - start < 2 * policy.fewest:
            continue
        split = _best(values[start:end], policy)
        if split.p_value > policy.error and found:
            continue
        found.append(Split(at=start + split.at, p_value=split.p_value))
        if split.p_value <= policy.error:
            left += [(start, start + split.at), (start + split.at, end)]
    return found


def _best(values: Floats, policy: HistoryPolicy) -> Split:
    n, ranks = len(values), _ranks(values)
    rng = np.random.default_rng(n)  # the same runs always get the same p-value
    orders = rng.permuted(np.tile(ranks, (policy.permutations, 1)), axis=1)
    statistics = _statistics(np.vstack([ranks, orders]), policy.fewest)
    most = statistics.max(axis=1)
    above = int((most[1:] >= most[0] * (1 - 1e-9)).sum())
    at = int(statistics[0].argmax()) + policy.fewest
    return Split(at=at, p_value=(1 + above) / (1 + policy.permutations))


def _ranks(values: Floats) -> Floats:
    """Ranks from 0; equal values share their mean rank."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = np.arange(len(values))
    for value in np.unique(values):
        same = values == value
        ranks[same] = ranks[same].mean()
    return ranks


def _statistics(ranks: Floats, fewest: int) -> Floats:
    """How far the ranks before each split are from those after, shape (rows, splits)."""
    n = ranks.shape[1]
    before = np.arange(fewest, n - fewest + 1)
    sums = ranks.cumsum(axis=1)[:, before - 1]
    expected = before * ranks.mean(axis=1, keepdims=True)
    spread = np.sqrt(before * (n - before) / n) * max(float(ranks[0].std()), 1e-300)
    found: Floats = np.abs(sums - expected) / spread
    return found
