"""Detects when memory crosses `--warn-at` and `--critical-at`, while it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memdiag.recording.native.schema import METRIC_ROLES
from memdiag.values.measurements import Limit, Mark, Role, Sample
from memdiag.values.thresholds import Threshold, one_gpu

_TREE = "tree"
# A threshold without a metric applies to host memory and device memory of the whole tree. Without
# readings of the driver, the memory reserved by a framework's allocator is used.
_HOST, _DEVICE, _FRAMEWORK = "rss_bytes", "vram_bytes", "vram_reserved_bytes"


@dataclass(frozen=True, slots=True)
class _Applied:
    """A threshold as it applies to one metric. limit: the one that it is a share of, or ""."""

    size_bytes: float
    limit: str


class Alarms:
    """Reports each threshold once for each kind of memory.

    limits: the limits that apply now; called only for thresholds in percent.
    """

    def __init__(
        self, thresholds: Sequence[Threshold], limits: Callable[[], Sequence[Limit]]
    ) -> None:
        self._thresholds = thresholds
        self._limits = limits
        self._reported: set[tuple[Threshold, str]] = set()
        self._driver_reports = False

    def see(self, samples: Sequence[Sample]) -> list[Mark]:
        """The thresholds that these samples are the first to cross."""
        if not self._thresholds:
            return []
        found: list[Mark] = []
        for sample in samples:
            if sample.process == _TREE:
                self._driver_reports |= any(_is_drivers(metric) for metric in sample.readings)
            for threshold in self._thresholds:
                found += self._see(threshold, sample)
        return found

    def _see(self, threshold: Threshold, sample: Sample) -> Iterator[Mark]:
        for metric, value in sample.readings.items():
            if (threshold, metric) in self._reported or not self._is_meant(
                threshold, metric, sample
            ):
                continue
            passed = self._applied(threshold, metric, sample.process)
            if passed is None or value < passed.size_bytes:
                continue
            self._reported.add((threshold, metric))
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

    def _applied(self, threshold: Threshold, metric: str, process: str) -> _Applied | None:
        if threshold.size_bytes is not None:
            return _Applied(threshold.size_bytes, "")
        role = _role(metric)
        of_all = process == _TREE or metric != _HOST
        holding = [
            limit
            for limit in self._limits()
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
