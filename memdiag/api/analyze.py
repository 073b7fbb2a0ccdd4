"""`memdiag.analyze` and `memdiag.compare`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memdiag.api.diagnosis import Comparison, Diagnosis
from memdiag.errors import UsageError
from memdiag.values import findings

if TYPE_CHECKING:
    from memdiag.recording.read_options import ReadOptions
    from memdiag.values.measurements import Recording

_PATH = (str, os.PathLike)


def analyze(
    source: Any,
    *,
    axis: Any = None,
    axis_is: str = "",
    metric: str | Sequence[str] = (),
    phase: str = "",
) -> Diagnosis:
    """Judge recordings, logs or values, as `memdiag analyze` does.

    source: a path, a pattern or a sequence of them (anything that `memdiag analyze` reads), a
    pandas or polars DataFrame, a dict of arrays, or an array of readings, shape (n,).
    axis: the name of the column to use as the x axis (`--x`); for an array, the positions of its
    readings, shape (n,). axis_is: what the axis counts (`--x-is`): step, epoch, second, sample,
    operation, request; by default an array is over steps if it has an axis, and else over samples.
    metric: names of columns to judge, with a unit (`--metric`): "gpu_mem=GB". An array has one
    metric, in bytes by default: "memory=MB". phase: name of the column with phases.

    Raises ReadError if a source cannot be read, and UsageError for arguments that make no sense.
    """
    from memdiag.analysis.diagnose import diagnose
    from memdiag.analysis.readings import with_readings

    options = _options(axis, axis_is, metric, phase)
    found = [with_readings(diagnose(one), one) for one in _recordings(source, options, axis)]
    return Diagnosis(found=findings.Diagnosis(recordings=tuple(found)))


def compare(before: Any, after: Any) -> Comparison:
    """What changed from the runs `before` to the runs `after`, as `memdiag compare` finds it.

    before, after: a Diagnosis, or what `analyze` takes. Raises what `analyze` raises.
    """
    from memdiag.analysis.comparison.compare import compare as compared

    sides = (one if isinstance(one, Diagnosis) else analyze(one) for one in (before, after))
    base, candidate = (side.found.recordings for side in sides)
    return Comparison(found=compared(base, candidate))


def _options(axis: Any, axis_is: str, metric: str | Sequence[str], phase: str) -> ReadOptions:
    from memdiag.recording.read_options import ReadOptions, parse_metric, parse_x_is

    metrics = (metric,) if isinstance(metric, str) else tuple(metric)
    return ReadOptions(
        x=axis if isinstance(axis, str) else "",
        x_is=parse_x_is(axis_is),
        metrics=tuple(map(parse_metric, metrics)),
        phase_column=phase,
    )


def _recordings(source: Any, options: ReadOptions, axis: Any) -> Iterator[Recording]:
    """Reads one after the other. Raises ReadError or UsageError."""
    from memdiag.recording.read import expand, read, read_values

    paths = _paths(source)
    if paths is None:
        positions = None if isinstance(axis, str) else axis
        if positions is not None and (hasattr(source, "columns") or isinstance(source, Mapping)):
            raise UsageError("the axis of a table is a column", remedy="give its name")
        yield read_values(source, options, axis=positions)
        return
    if axis is not None and not isinstance(axis, str):
        raise UsageError("the axis of a file is a column", remedy="give its name")
    if not paths:
        raise UsageError("there is nothing to analyze", remedy="name a recording or a log")
    for one in expand(paths):
        yield read(one, options)


def _paths(source: Any) -> list[str] | None:
    """The paths in `source`; None if it holds values."""
    if isinstance(source, _PATH):
        return [os.fspath(source)]
    if isinstance(source, (list, tuple, set, frozenset)) and all(
        isinstance(one, _PATH) for one in source
    ):
        return [os.fspath(one) for one in source]
    return None
