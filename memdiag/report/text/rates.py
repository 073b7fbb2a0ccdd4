"""Growth rates as people write them: per step, per minute, per 1,000 requests."""

from __future__ import annotations

from dataclasses import dataclass, replace

from memdiag.report.text import numbers, wording
from memdiag.values.findings import Finding, Interval, RecordingFinding
from memdiag.values.measurements import Axis, AxisKind, Unit

_MEANINGFUL_BYTES = 1e6
_NONE_BYTES = 1e-3  # rounding of a fit
_CLOCK = ((1.0, "second"), (60.0, "minute"), (3600.0, "hour"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """growth: in `unit` per `per` (`step`, `1,000 requests`, `hour`)."""

    growth: Interval
    unit: Unit
    per: str

    def brief(self) -> str:
        """`+291 MB per step`."""
        return f"{numbers.signed(self.growth.value, self.unit)} per {self.per}"

    def full(self, plus_minus: str) -> str:
        """`+291 ± 12 MB per step`."""
        return f"{numbers.estimate(self.growth, self.unit, plus_minus)} per {self.per}"


def of(finding: Finding) -> Rate | None:
    """The rate of the last segment, below zero for free memory that falls; None if unknown."""
    if finding.growth_per_x is None:
        return None
    return rate(_recorded(finding.growth_per_x, finding), finding.axis, finding.unit)


def whole(found: RecordingFinding) -> Rate | None:
    """The rate of all processes of a job together, where it is known; else of what decides."""
    finding = found.deciding
    if finding is None or found.growth is None:
        return None if finding is None else of(finding)
    return rate(_recorded(found.growth.growth_per_x, finding), finding.axis, finding.unit)


def _recorded(growth: Interval, finding: Finding) -> Interval:
    """The growth of the column's values."""
    if not finding.falling:
        return growth
    return Interval(value=-growth.value, low=-growth.high, high=-growth.low)


def per_epoch(finding: Finding) -> Rate | None:
    """The same rate per epoch; None if epochs are unknown beside the axis."""
    if finding.growth_per_epoch is None:
        return None
    growth = _recorded(finding.growth_per_epoch, finding)
    return Rate(growth=growth, unit=finding.unit, per=wording.EPOCH)


def rate(growth: Interval, axis: Axis, unit: Unit, *, largest: float | None = None) -> Rate:
    """`growth` per unit of the axis, or per a multiple that suits its size or that of `largest`."""
    if unit is Unit.BYTES and abs(growth.value) < _NONE_BYTES:
        growth = replace(growth, value=0.0)
    times, per = _per(axis, unit, abs(growth.value) if largest is None else largest)
    scaled = replace(
        growth, value=growth.value * times, low=growth.low * times, high=growth.high * times
    )
    return Rate(growth=scaled, unit=unit, per=per)


def brief(growth: float, axis: str, unit: str) -> str:
    """`+30.4 MB per step`: a growth without its interval. axis, unit: names of an AxisKind and of a
    Unit, as files of results have them.
    """
    kind = AxisKind(axis)
    return rate(Interval.around(growth), Axis(name=kind.value, kind=kind), Unit(unit)).brief()


def _per(axis: Axis, unit: Unit, growth: float) -> tuple[float, str]:
    enough = _MEANINGFUL_BYTES if unit is Unit.BYTES else 1.0
    if axis.kind is AxisKind.SECONDS:
        for times, word in _CLOCK:
            if growth * times >= enough or word == "hour":
                return times, word
    if 0 < growth < (1.0 if unit is Unit.BYTES else 0.01):
        return 1000.0, f"1,000 {wording.axis(axis, 1000)}"
    return 1.0, wording.axis(axis)
