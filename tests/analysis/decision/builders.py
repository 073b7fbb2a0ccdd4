"""What the decision says of a few series with one of its checks and without, and shapes for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from memory_series import series_of

from memdiag.analysis.diagnose import judge
from memdiag.analysis.policy import DEFAULT
from memdiag.values.findings import RecordingFinding
from memdiag.values.measurements import Recording, Role, Series, Unit
from memdiag.values.verdict import Side, Verdict

MB = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """sides: of all that the check, window or end said. verdicts: of the recording, with it and
    with it switched off. of_first: the same of the first series."""

    sides: frozenset[Side]
    verdicts: tuple[Verdict, Verdict]
    of_first: tuple[Verdict, Verdict]


def asked(name: str, *series: Series, **more: object) -> Asked:
    """Judge a recording of these series with the check of that name and without."""
    recording = Recording(source="test", series=series, **more)  # type: ignore[arg-type]
    judged = judge(recording)
    off = judge(recording, replace(DEFAULT, off=frozenset({name})))
    return Asked(
        sides=_sides(name, judged),
        verdicts=(judged.verdict, off.verdict),
        of_first=(judged.series[0].verdict, off.series[0].verdict),
    )


def _sides(name: str, judged: RecordingFinding) -> frozenset[Side]:
    arguments = [argument for finding in judged.series for argument in finding.trail]
    return frozenset(a.side for a in arguments if name in (a.check, a.look))


def every(stride: float, y: np.ndarray, **more: object) -> Series:
    """RSS that is read every so many steps."""
    return series_of(y, stride * np.arange(len(y)), **more)  # type: ignore[arg-type]


def python_blocks(y: np.ndarray, **more: object) -> Series:
    """Blocks of Python's own allocator."""
    about = {"role": Role.OBJECTS, "metric": "python_blocks", "unit": Unit.COUNT}
    return series_of(y, **{**about, **more})  # type: ignore[arg-type]


def malloc(y: np.ndarray, **more: object) -> Series:
    """What malloc has handed out."""
    return series_of(y, **{"role": Role.IN_USE, "metric": "malloc_bytes", **more})  # type: ignore[arg-type]


def waves(cycles: float, readings: int, seed: int = 0) -> np.ndarray:
    """8 GB under the load of so many days, which swings by 160 MB, with some noise."""
    random, at = np.random.default_rng(seed), np.linspace(0, 1, readings)
    wave = 80 * MB * np.sin(2 * np.pi * (cycles * at + random.uniform()))
    return 8e9 + wave + random.normal(0, 2.4 * MB, readings)
