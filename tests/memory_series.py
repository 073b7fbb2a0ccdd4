"""Series for tests of the decision: a few lines each, of numbers that read like a log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memdiag.analysis.diagnose import diagnose
from memdiag.findings import RecordingFinding
from memdiag.model import Axis, AxisKind, Recording, Role, Series, Unit


def series_of(
    y: Sequence[float] | np.ndarray,
    x: Sequence[float] | np.ndarray | None = None,
    *,
    kind: AxisKind = AxisKind.STEP,
    role: Role = Role.RESIDENT,
    metric: str = "rss_bytes",
    process: str = "",
    unit: Unit = Unit.BYTES,
    **more: object,
) -> Series:
    """A series of readings over 0, 1, 2, ... or over `x`."""
    values = np.asarray(y, dtype=float)
    return Series(
        metric=metric,
        column=metric,
        role=role,
        unit=unit,
        axis=Axis(name=kind.value, kind=kind),
        x=np.arange(len(values), dtype=float) if x is None else np.asarray(x, dtype=float),
        y=values,
        process=process,
        **more,  # type: ignore[arg-type]
    )


def judge(*series: Series, **more: object) -> RecordingFinding:
    """Diagnose a recording of these series."""
    return diagnose(Recording(source="test", series=series, **more))  # type: ignore[arg-type]
