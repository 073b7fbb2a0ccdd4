"""The values of many recordings judged together: what is kept of each, and the summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memdiag.values.groups import GroupFinding
from memdiag.values.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesResult:
    """What is kept of the finding on one series.

    metric, column, process, role, unit, verdict, confidence, reason, samples, first_x, last_x,
    start_value, latest_value, peak_value, onset_x: as in `Finding`. axis: kind of the x axis.
    growth_per_x: growth rate of the last segment, in `unit` per unit of the axis; None if unknown.
    growth_low, growth_high: its 95% interval. growth_per_s: the same rate per second.
    limit_name: the limit that is reached first, "" if none. limit_bytes: its size.
    limit_at_x: position at which it is reached. limit_in_s: seconds left at the recorded pace.
    is_deciding: the verdict on the recording rests on this series.
    is_rank: the process is a rank of a distributed job.
    points: (x, y) of the series in at most `POINTS` equal parts: middle x, median y; empty unless
    the recording is a part of a job.
    """

    metric: str
    column: str
    process: str
    role: str
    unit: str
    axis: str
    verdict: Verdict
    confidence: float
    reason: str
    samples: int
    first_x: float
    last_x: float
    start_value: float
    latest_value: float
    peak_value: float
    growth_per_x: float | None
    growth_low: float | None
    growth_high: float | None
    growth_per_s: float | None
    onset_x: float | None
    limit_name: str
    limit_bytes: int | None
    limit_at_x: float | None
    limit_in_s: float | None
    is_deciding: bool
    is_rank: bool
    points: tuple[tuple[float, float], ...]


POINTS = 48
"""Points that are kept of a series; enough to compare ranks. Heuristic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingResult:
    """What is kept of one recording.

    path: as it was named. verdict: None if it could not be judged; `error` then says why.
    confidence: probability that the verdict is right, 0 to 1. why: the reason of the verdict.
    error: why the recording could not be judged, "" if it was. It may hold text from outside.
    series: one for each series. labels: what is known of the run: job, rank, node, branch, commit,
    image, script, directory. started_at: ISO time of the start of the run, "" if unknown.
    key: BLAKE2b of the content. tag: size and time of the file, or what its store has for that.
    is_unchanged: the content has this key already; nothing else of this result is known.
    cpu_s: CPU seconds that reading and judging took, the mean of those judged in the same call.
    """

    path: str
    verdict: Verdict | None = None
    confidence: float = 0.0
    why: str = ""
    error: str = ""
    series: tuple[SeriesResult, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    started_at: str = ""
    key: str = ""
    tag: str = ""
    is_unchanged: bool = False
    cpu_s: float = 0.0

    @property
    def deciding(self) -> SeriesResult | None:
        """The series that the verdict rests on."""
        return next((one for one in self.series if one.is_deciding), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """A leaking recording in a summary.

    path: its name. metric, process: the series. growth_per_x: growth rate, in `unit` per unit of
    `axis`. growth_per_s: the same per second; None without a clock. limit_name: the limit that is
    reached first. limit_in_s: the seconds left at the end of the recording. is_new: it was not
    called a leak the last time.
    """

    path: str
    metric: str
    process: str
    unit: str
    axis: str
    growth_per_x: float | None
    growth_per_s: float | None
    limit_name: str
    limit_in_s: float | None
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """Many recordings in a screen.

    recordings: how many were asked for. judged: how many of them this call has judged; the others
    are unchanged. counts: number of recordings of each verdict; "error" for those that could not be
    read. inconclusive: number of inconclusive recordings by reason. worst: the leaks that reach a
    limit or grow the fastest, at most ten. new_leaks: recordings called a leak now, and not before.
    ended_leaks: recordings called a leak the last time, and not now. failures: (path, reason) of
    the first that could not be read. is_first: there were no results before. groups: number of jobs
    of several recordings by verdict. leaking_groups: at most ten jobs that leak.
    """

    recordings: int
    judged: int
    counts: Mapping[str, int]
    inconclusive: Mapping[str, int]
    worst: tuple[Growing, ...]
    new_leaks: int
    ended_leaks: int
    failures: tuple[tuple[str, str], ...]
    is_first: bool
    groups: Mapping[str, int] = field(default_factory=dict)
    leaking_groups: tuple[GroupFinding, ...] = ()
