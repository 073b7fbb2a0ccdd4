"""Detects when memory crosses `--warn-at` and `--critical-at`, while it is measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memdiag.values.measurements import Limit, Mark, MarkLevel, Role, Sample
from memdiag.values.metrics import METRIC_ROLES
from memdiag.values.thresholds import Threshold, one_gpu

if TYPE_CHECKING:
    from memdiag.analysis.live.sequential import LimitAhead

_TREE = "tree"
# A threshold without a metric applies to host memory and device memory of the whole tree. Without
# readings of the driver, the memory reserved by a framework's allocator is used.
_HOST, _DEVICE, _FRAMEWORK = "rss_bytes", "vram_bytes", "vram_reserved_bytes"


# A threshold is left, and reported when it is crossed again, once memory is this much below it: a
# share of the threshold. Heuristic.
LEFT = 0.05


@dataclass(frozen=True, slots=True)
class _Applied:
    """A threshold as it applies to one metric. limit: the one that it is a share of, or ""."""

    size_bytes: float
    limit: str


class Alarms:
    """Reports each crossing of a threshold once for each kind of memory, until it was left.

    limits: the limits that apply now; called only for thresholds in percent.
    """

    def __init__(
        self, thresholds: Sequence[Threshold], limits: Callable[[], Sequence[Limit]]
    ) -> None:
        self._sizes = [one for one in thresholds if one.within_s is None]
        self._times = [one for one in thresholds if one.within_s is not None]
        self._limits = limits
        # The processes that have crossed a threshold and not left it.
        self._above: defaultdict[tuple[Threshold, str], set[str]] = defaultdict(set)
        self._driver_reports = False

    @property
    def levels(self) -> frozenset[MarkLevel]:
        """The levels with a threshold that was crossed and not left."""
        return frozenset(threshold.level for (threshold, _), above in self._above.items() if above)

    def see(self, samples: Sequence[Sample]) -> list[Mark]:
        """The thresholds that these samples, of one moment, cross."""
        if not self._sizes:
            return []
        found: list[Mark] = []
        limits = self._limits() if any(one.share is not None for one in self._sizes) else ()
        for sample in samples:
            if sample.process == _TREE:
                self._driver_reports |= any(_is_drivers(metric) for metric in sample.readings)
            for threshold in self._sizes:
                found += self._see(threshold, sample, limits)
        there = {sample.process for sample in samples}
        for above in self._above.values():
            above.intersection_update(there)
        return found

    def foresee(self, ahead: LimitAhead, now: Sample) -> list[Mark]:
        """The thresholds in time that the forecast crosses. now: the tree's latest sample."""
        left_s = max(0.0, ahead.at_s - now.at_s)
        found = []
        for threshold in self._times:
            within_s = threshold.within_s or 0.0
            if self._is_new(threshold, "", _TREE, within_s - left_s, within_s):
                found.append(
                    Mark(
                        level=threshold.level,
                        threshold=threshold.text,
                        threshold_bytes=ahead.limit_bytes,
                        at_s=now.at_s,
                        metric=ahead.metric,
                        process=ahead.process,
                        value_bytes=ahead.value_bytes,
                        step=now.step,
                        phase=now.phase,
                        limit=ahead.limit,
                        left_s=left_s,
                    )
                )
        return found

    def _is_new(
        self, threshold: Threshold, metric: str, process: str, beyond: float, size: float
    ) -> bool:
        """Return True if a threshold is crossed that was not, or was left since.

        beyond: how far it is crossed; size: the threshold itself, in the same unit.
        """
        above = self._above[threshold, metric]
        if beyond >= 0:
            is_new = not above
            above.add(process)
            return is_new
        if beyond < -LEFT * size:
            above.discard(process)
        return False

    def _see(self, threshold: Threshold, sample: Sample, limits: Sequence[Limit]) -> Iterator[Mark]:
        for metric, value in sample.readings.items():
            if not self._is_meant(threshold, metric, sample):
                continue
            passed = _applied(threshold, metric, sample.process, limits)
            if passed is None:
                continue
            beyond = value - passed.size_bytes
            if not self._is_new(threshold, metric, sample.process, beyond, passed.size_bytes):
                continue
            yield Mark(
                level=threshold.level,
                threshold=threshold.text,
                threshold_bytes=round(passed.size_bytes),
                at_s=sample.at_s,
                metric=metric,
                process=sample.process,
                value_bytes=int(value),
                step=sample.step,
                phase=sample.phase,
                limit=passed.limit,
            )

    def _is_meant(self, threshold: Threshold, metric: str, sample: Sample) -> bool:
        if threshold.metric:
            return threshold.is_for(metric)
        if sample.process == _TREE:
            return metric == _HOST or _is_drivers(metric)
        if metric == _FRAMEWORK:
            return not self._driver_reports
        # For single processes only their own limits: the resource limits.
        return metric == _HOST and threshold.share is not None


def _applied(
    threshold: Threshold, metric: str, process: str, limits: Sequence[Limit]
) -> _Applied | None:
    if threshold.size_bytes is not None:
        return _Applied(threshold.size_bytes, "")
    role = _role(metric)
    of_all = process == _TREE or metric != _HOST
    holding = [
        limit
        for limit in limits
        if role in limit.roles
        and limit.holds_for(metric, process)
        and (of_all or limit.per_process)
    ]
    if not holding or threshold.share is None:
        return None
    tightest = min(holding, key=lambda limit: limit.value_bytes)
    return _Applied(threshold.share * tightest.value_bytes, tightest.name)


def _is_drivers(metric: str) -> bool:
    """Return True for the driver's reading of the tree, or of its share of one GPU."""
    return metric == _DEVICE or one_gpu(metric)


def _role(metric: str) -> Role:
    return Role.DEVICE if _is_drivers(metric) else METRIC_ROLES.get(metric, Role.COUNTER)
