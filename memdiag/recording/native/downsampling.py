"""Downsampling of a long recording: a day of ten processes must fit in 50 MB.

Time is divided into buckets that grow with the run: at time t a bucket is about t / 250 wide, so an
early second and a late quarter of an hour have the same resolution. Of each bucket and process the
first and the last row are kept, and the lowest and the highest of every metric, so no peak and no
floor is lost. Further rows are kept as far as the budget of a bucket allows: changes of the phase
with the row before them (once per phase and bucket in any case), jumps with the row before them,
and the floors of steps. A job may start millions of short-lived processes; only the largest of each
bucket are kept. Memory is constant per live process.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memdiag.values.measurements import YOUNG_S, Sample

# Heuristic: about 2300 buckets a day and process.
_BUCKETS_PER_RUN = 250.0
# A process that starts late has the resolution of one that starts early, for a quarter of its age.
_AGE_WEIGHT = 4.0
# A difference that exceeds the usual one by this factor is a jump.
_JUMP = 8.0
_DIFFERENCE_MEMORY = 0.05
_FLOORS_PER_BUCKET = 6
_FLOOR_METRICS = ("rss_bytes", "vram_bytes")
# Budget of a bucket for further jumps and phase changes; an unused budget accumulates.
_SPARE_ROWS_PER_BUCKET = 4
_SPARE_ROWS_AT_MOST = 400
# Short-lived processes of one bucket that are kept (heuristic).
_HELPERS_PER_BUCKET = 4
# Number of new processes after which ended ones are looked for.
_RETIRE_EVERY = 256
# A process without rows for this many buckets has ended.
_GONE_AFTER_BUCKETS = 4.0


@dataclass(slots=True)
class _Extreme:
    """The lowest, highest and latest reading of a metric in a bucket, and its usual difference."""

    low: float
    low_row: int
    high: float
    high_row: int
    latest: float
    usual_difference: float = 0.0


@dataclass(slots=True)
class _Stream:
    """One process's open bucket."""

    began_s: float
    ends_s: float
    last_row: int
    last_s: float
    step: int | None
    phase: str
    metrics: dict[str, _Extreme] = field(default_factory=dict)
    floors: dict[str, tuple[float, int]] = field(default_factory=dict)
    floor_kept_s: float = 0.0
    phases_seen: set[str] = field(default_factory=set)
    spare_rows: int = _SPARE_ROWS_AT_MOST
    young: bool = False
    young_rows: list[int] = field(default_factory=list)
    young_peak: float = 0.0
    # The readings of the last row, and the number of equal rows since.
    readings: dict[str, int | float] | None = None
    repeated: int = 0

    def catch_up(self) -> None:
        """Apply the equal rows to the usual differences."""
        if self.repeated and self.readings is not None:
            for name in self.readings:
                self.metrics[name].usual_difference *= (1 - _DIFFERENCE_MEMORY) ** self.repeated
        self.repeated = 0


@dataclass(frozen=True, slots=True)
class _Helper:
    """A short-lived process that has ended: its start, its peak, its rows."""

    began_s: float
    peak_bytes: float
    rows: list[int]


class Downsampler:
    """Decides which rows are kept; rows are added in the order of the file.

    interval_s: the sampling interval, the smallest width of a bucket.
    """

    def __init__(self, *, interval_s: float) -> None:
        self._interval_s = interval_s
        self._coarseness = 1.0
        self._keep = bytearray()
        self._streams: dict[tuple[int, str], _Stream] = {}
        self._helpers: list[_Helper] = []
        self._new_streams = 0

    @property
    def processes(self) -> int:
        """Number of processes in memory."""
        return len(self._streams)

    def add(self, sample: Sample) -> None:
        """Add the next row of the file."""
        at_s, pid, process, readings, step, phase, young = sample
        row = len(self._keep)
        self._keep.append(0)
        stream = self._streams.get((pid, process))
        if stream is None:
            stream = self._streams[pid, process] = self._begin(sample, row)
        elif at_s >= stream.ends_s:
            self._close(stream)
            self._open(stream, sample, row)
        elif readings == stream.readings and phase == stream.phase and step == stream.step:
            stream.last_row, stream.last_s = row, at_s  # most rows of an idle process
            stream.repeated += 1
            return
        if phase != stream.phase:
            self._change_phase(stream, phase, row)
        if step != stream.step:
            self._end_step(stream, sample)
        stream.catch_up()
        for name, value in readings.items():
            self._take(stream, name, value, row)
        stream.last_row, stream.last_s = row, at_s
        stream.readings = None if young else readings
        stream.young = young
        if young:
            stream.young_rows.append(row)
            stream.young_peak = max(stream.young_peak, readings.get("rss_bytes", 0))

    def cut(self, now_s: float) -> bytes:
        """Close all buckets: one byte per row since the last cut, 1 if the row is kept."""
        self._retire(now_s)
        self._drop_helpers()
        for stream in self._streams.values():
            self._close(stream)
        keep, self._keep = bytes(self._keep), bytearray()
        gone_before_s = now_s - _GONE_AFTER_BUCKETS * self._width_s(now_s, now_s)
        self._streams = {k: s for k, s in self._streams.items() if s.last_s >= gone_before_s}
        for stream in self._streams.values():
            stream.ends_s = 0.0  # the next row opens a bucket
            stream.last_row = -1
            stream.floors = {}
            stream.young_rows = []
        return keep

    def _retire(self, now_s: float) -> None:
        """Remove the short-lived processes that have ended."""
        gone_before_s = now_s - YOUNG_S - self._interval_s
        for key, stream in list(self._streams.items()):
            if stream.young and stream.last_s < gone_before_s:
                helper = _Helper(stream.began_s, stream.young_peak, stream.young_rows)
                self._helpers.append(helper)
                self._close(stream)
                del self._streams[key]

    def _drop_helpers(self) -> None:
        """Drop all but the largest short-lived processes of each bucket."""
        helpers, self._helpers = sorted(self._helpers, key=lambda one: one.began_s), []
        while helpers:
            ends_s = helpers[0].began_s + self._width_s(helpers[0].began_s, helpers[0].began_s)
            inside = next((i for i, h in enumerate(helpers) if h.began_s > ends_s), len(helpers))
            bucket, helpers = helpers[:inside], helpers[inside:]
            bucket.sort(key=lambda one: one.peak_bytes, reverse=True)
            for helper in bucket[_HELPERS_PER_BUCKET:]:
                for row in helper.rows:
                    self._keep[row] = 0

    def coarsen(self, factor: float) -> None:
        """Make buckets wider (above 1) or narrower, but never narrower than at the start."""
        self._coarseness = max(1.0, self._coarseness * factor)

    def _width_s(self, at_s: float, age_s: float) -> float:
        drawn_s = _AGE_WEIGHT * age_s
        natural = (at_s if at_s < drawn_s else drawn_s) / _BUCKETS_PER_RUN
        return (natural if natural > self._interval_s else self._interval_s) * self._coarseness

    def _begin(self, sample: Sample, row: int) -> _Stream:
        self._new_streams += 1
        if self._new_streams % _RETIRE_EVERY == 0:
            self._retire(sample.at_s)
        stream = _Stream(
            began_s=sample.at_s,
            ends_s=0.0,
            last_row=-1,
            last_s=sample.at_s,
            step=sample.step,
            phase=sample.phase,
        )
        self._open(stream, sample, row)
        return stream

    def _open(self, stream: _Stream, sample: Sample, row: int) -> None:
        width_s = self._width_s(sample.at_s, sample.at_s - stream.began_s)
        stream.ends_s = sample.at_s + width_s - self._interval_s / 2
        stream.phases_seen = {sample.phase}
        stream.spare_rows = min(stream.spare_rows + _SPARE_ROWS_PER_BUCKET, _SPARE_ROWS_AT_MOST)
        self._keep[row] = 1

    def _close(self, stream: _Stream) -> None:
        keep = self._keep
        if stream.last_row >= 0:
            keep[stream.last_row] = 1
        for metric in stream.metrics.values():
            if metric.low_row >= 0:
                keep[metric.low_row] = keep[metric.high_row] = 1
                metric.low_row = metric.high_row = -1

    def _change_phase(self, stream: _Stream, phase: str, row: int) -> None:
        stream.phase = phase
        if phase not in stream.phases_seen:
            stream.phases_seen.add(phase)
            self._keep_with_previous(stream, row)
        elif stream.spare_rows > _SPARE_ROWS_AT_MOST // 4:  # the last of the budget is for jumps
            stream.spare_rows -= self._keep_with_previous(stream, row)

    def _keep_with_previous(self, stream: _Stream, row: int) -> int:
        """Keep this row and the one before it. Returns the number of rows that this adds."""
        added = 1 - self._keep[row]
        self._keep[row] = 1
        if stream.last_row >= 0:
            added += 1 - self._keep[stream.last_row]
            self._keep[stream.last_row] = 1
        return added

    def _end_step(self, stream: _Stream, sample: Sample) -> None:
        stream.step = sample.step
        width_s = self._width_s(sample.at_s, sample.at_s - stream.began_s)
        if sample.at_s - stream.floor_kept_s >= width_s / _FLOORS_PER_BUCKET:
            stream.floor_kept_s = sample.at_s
            for _, row in stream.floors.values():
                self._keep[row] = 1
        stream.floors = {}

    def _take(self, stream: _Stream, name: str, value: float, row: int) -> None:
        metric = stream.metrics.get(name)
        if metric is None:
            stream.metrics[name] = _Extreme(value, row, value, row, value)
            self._keep[row] = 1
            return
        is_known = name in stream.floors or name not in _FLOOR_METRICS
        if value == metric.latest and metric.low_row >= 0 and is_known:
            metric.usual_difference *= 1 - _DIFFERENCE_MEMORY
            return
        difference = abs(value - metric.latest)
        if difference > _JUMP * metric.usual_difference and stream.spare_rows > 0:
            stream.spare_rows -= self._keep_with_previous(stream, row)
        usual = min(difference, _JUMP * metric.usual_difference or difference)
        metric.usual_difference += _DIFFERENCE_MEMORY * (usual - metric.usual_difference)
        metric.latest = value
        if metric.low_row < 0 or value < metric.low:
            metric.low, metric.low_row = value, row
        if metric.high_row < 0 or value > metric.high:
            metric.high, metric.high_row = value, row
        if name in _FLOOR_METRICS:
            floor = stream.floors.get(name)
            if floor is None or value < floor[0]:
                stream.floors[name] = (value, row)
