"""Series for tests of the decision: a few lines each, of numbers that read like a log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memdiag.analysis.diagnose import diagnose
from memdiag.values.findings import RecordingFinding
from memdiag.values.measurements import Axis, AxisKind, Recording, Role, Series, Unit


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


def noisy(y: np.ndarray, share: float = 0.001, seed: int = 0) -> np.ndarray:
    """With noise of that share of the median."""
    return y + np.random.default_rng(seed).normal(0, share * np.median(np.abs(y)), len(y))


def judge(*series: Series, **more: object) -> RecordingFinding:
    """Diagnose a recording of these series."""
    return diagnose(Recording(source="test", series=series, **more))  # type: ignore[arg-type]


def until_killed(seed: int, limit_bytes: int) -> tuple[Series, int]:
    """RSS of a leak after a warm-up, with what trainings do besides, up to the limit's step."""
    rng = np.random.default_rng(seed)
    room = float(limit_bytes)
    start, warm, rate = room * rng.uniform(0.25, 0.5), room * rng.uniform(0, 0.1), room / 1500
    x = np.arange(3000, dtype=float)
    y = start + warm * (1 - np.exp(-x / rng.uniform(3, 40))) + rate * x
    besides = (
        np.zeros(x.size),
        rng.normal(0, 3 * rate, x.size),
        2 * rate * (x % rng.integers(5, 40)),  # what a collector frees now and then
        np.where(x % rng.integers(20, 60) < 3, 0.03 * start, 0.0),  # evaluation
    )
    y += besides[seed % len(besides)] + rng.normal(0, 0.2 * (1 << 20), x.size)
    killed = int(np.argmax(y >= room))
    seen = slice(None, killed)
    return series_of(y[seen], x[seen], process="tree", at_s=0.1 * x[seen]), killed
