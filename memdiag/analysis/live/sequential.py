"""Online verdict in constant memory; safe to query after every sample.

It is the verdict on a recording of the samples so far: the same list for each series, the same
rules across them. It is LEAK only where the list also finds one with the parameters of a run that
is watched (`policy.while_watched`), and with the extra check that it then asks
(`growth_evidence`), or found one and the verdict has been LEAK since. So it may come later than
the verdict on the recording, but never contradicts it.

Series are judged at sample counts that grow geometrically, sooner once growth is evident.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from memdiag.analysis.build_finding import build_finding
from memdiag.analysis.decision.across import decide as across
from memdiag.analysis.decision.case import Context
from memdiag.analysis.decision.decide import decide
from memdiag.analysis.forecasting.first_limit import first_limit
from memdiag.analysis.live.streaming_minima import Floors
from memdiag.analysis.policy import DEFAULT, Policy, while_watched
from memdiag.analysis.preprocessing.prepare import prepare
from memdiag.values.findings import Finding
from memdiag.values.measurements import Axis, AxisKind, Limit, Role, Sample, Series, Unit
from memdiag.values.metrics import METRIC_ROLES
from memdiag.values.verdict import Reason, Verdict

MOST_TRACKS = 256  # series followed at a time; the longest unseen is dropped: heuristic
LEAST_BINS = 16  # somewhat more rising floors than the e-process needs for its alarm
PAUSE_S = 0.5  # between two judgements of a series: nobody reads faster (heuristic)
_RANK = re.compile(r"rank\d+")  # what the probe calls one (capture/probelink/ring_reader.py)
LEAST_MORE = 2  # floors before a series is judged again: heuristic


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitAhead:
    """The limit that a leak reaches first, and when, on the clock of the samples.

    metric, process, value_bytes: the series that reaches it, and its last value.
    """

    limit: str
    limit_bytes: int
    at_s: float
    metric: str
    process: str
    value_bytes: int


def _no_limits() -> Sequence[Limit]:
    return ()


class LiveVerdict:
    """Judges a run sample by sample. Not safe for threads.

    Memory does not grow with the number of samples, processes or metrics; a sample costs
    microseconds, amortized.

    limit_ahead: the forecast while the verdict is LEAK; None else, and if no limit is ahead.
    """

    def __init__(
        self, policy: Policy = DEFAULT, limits: Callable[[], Sequence[Limit]] = _no_limits
    ) -> None:
        """limits: those that apply now, for the forecast."""
        self._policy, self._limits = policy, limits
        self.limit_ahead: LimitAhead | None = None
        self._tracks: OrderedDict[tuple[int, str, str], _Track] = OrderedDict()
        self._is_new = False
        self._leak_since_s: float | None = None
        self._next_s = self._now_s = 0.0
        self._found: Finding | None = None

    def add(self, sample: Sample) -> None:
        """Take one sample. Readings that are not finite numbers are skipped, and so are user
        counters and processes that may be gone in a moment."""
        self._now_s = max(self._now_s, sample.at_s)
        if sample.young:
            return
        for metric, value in sample.readings.items():
            role = METRIC_ROLES.get(metric)
            if role is None or not abs(value) < 1e300:
                continue
            track = self._track(sample, metric, role)
            track.add(sample, float(value))
            if track.is_due:
                track.judge(self._records(track), self._limits())
                self._is_new = True

    def verdict(self) -> Verdict:
        """The verdict so far; INCONCLUSIVE while there is none."""
        found = self.finding()
        return Verdict.INCONCLUSIVE if found is None else found.verdict

    def finding(self) -> Finding | None:
        """The finding that decides so far, with the verdict of all series together; None before
        there is any. Cheap, and safe to ask at any time."""
        if self._is_new:
            self._is_new = False
            self._found = self._judge()
        return self._found

    def findings(self) -> dict[tuple[str, str], Finding]:
        """The finding of each series, by process and metric, from when it was last judged."""
        return {
            (track.process, track.metric): track.finding
            for track in self._tracks.values()
            if track.finding is not None
        }

    def _judge(self) -> Finding | None:
        latest = {(t.process, t.metric): t for t in self._tracks.values()}  # of a restarted one
        tracks = list(latest.values())
        if not any(t.leaks for t in tracks):
            self._leak_since_s = None
        elif self._now_s < self._next_s:
            return self._found
        else:
            self._judge_anew(tracks)
        return self._together([t for t in tracks if t.finding is not None])

    def _judge_anew(self, tracks: list[_Track]) -> None:
        """A leak is reported on the state of all series at one moment."""
        if self._leak_since_s is None:
            self._leak_since_s = self._now_s
        waited_s = self._now_s - self._leak_since_s
        self._next_s = self._now_s + max(self._policy.live.patience * waited_s, PAUSE_S)
        for track in tracks:
            track.judge(self._records(track), self._limits())

    def _records(self, track: _Track) -> int:
        """How many of torch's flight recorders its memory includes."""
        if track.process != "tree":
            return int(_RANK.fullmatch(track.process) is not None)
        return len({process for _, process, _ in self._tracks if _RANK.fullmatch(process)})

    def _together(self, tracks: list[_Track]) -> Finding | None:
        policy = self._policy
        recorded = [track.series for track in self._tracks.values()]
        findings = across.correct(
            [t.finding for t in tracks if t.finding is not None], recorded, policy
        )
        verdict, sure, at = across.decide(findings, recorded, policy)
        if verdict is Verdict.LEAK:
            known = [_if_known(f, t) for f, t in zip(findings, tracks, strict=True)]
            verdict, sure, at = across.decide(known, recorded, policy)
            if verdict is not Verdict.LEAK:
                verdict = Verdict.INCONCLUSIVE
        self.limit_ahead = _limit_ahead(findings, tracks) if verdict is Verdict.LEAK else None
        return None if at is None else replace(findings[at], verdict=verdict, confidence=sure)

    def _track(self, sample: Sample, metric: str, role: Role) -> _Track:
        key = (sample.pid, sample.process, metric)
        track = self._tracks.get(key)
        if track is None:
            track = self._tracks[key] = _Track(metric, sample.process, role, self._policy)
            if len(self._tracks) > MOST_TRACKS:
                self._tracks.popitem(last=False)
        else:
            self._tracks.move_to_end(key)
        return track


def _limit_ahead(findings: Sequence[Finding], tracks: Sequence[_Track]) -> LimitAhead | None:
    """The first limit that a leak reaches. tracks: those of the findings, in the same order."""
    first = first_limit(findings, Verdict.LEAK)
    if first is None or first.left_s is None:
        return None
    track = tracks[first.series]
    at_s, value = track.last
    return LimitAhead(
        limit=first.limit,
        limit_bytes=first.limit_bytes,
        at_s=at_s + first.left_s.value,
        metric=track.metric,
        process=track.process,
        value_bytes=int(value),
    )


def _if_known(finding: Finding, track: _Track) -> Finding:
    """The finding, inconclusive where its leak is not yet one by the rules of a watched run."""
    if finding.verdict is not Verdict.LEAK or track.leaks:
        return finding
    return replace(finding, verdict=Verdict.INCONCLUSIVE, reason=Reason.STILL_CLIMBING)


class _Track:
    """One metric of one process.

    finding: from when it was last judged, None before. leaks: a LEAK, also by the rules of a run
    that is watched, now or since it was one. last: time and value of the last sample judged.
    """

    def __init__(self, metric: str, process: str, role: Role, policy: Policy) -> None:
        self.metric, self.process, self._role, self._policy = metric, process, role, policy
        self._watched = while_watched(policy, role)
        self._floors = Floors()
        self._stepped = False
        self._seen_s = self._next_s = self._next = 0.0
        self._rising_since: int | None = None
        self._judged = 0
        self.finding: Finding | None = None
        self.last = 0.0, 0.0
        self.leaks = False

    def add(self, sample: Sample, value: float) -> None:
        """One reading."""
        if sample.step is not None and not self._stepped:
            self._stepped, self._floors = True, Floors()  # what preceded was start-up
            self._next, self._rising_since, self._judged = 0.0, None, 0
            self.finding, self.leaks = None, False
        if self._stepped and sample.step is None:
            return
        self._seen_s = sample.at_s
        x = float(sample.step) if sample.step is not None else sample.at_s
        self._floors.add(value, x, sample.at_s)

    @property
    def is_due(self) -> bool:
        """Return True if it is time to judge it again."""
        floors = self._floors
        if len(floors) < LEAST_BINS or self._seen_s < self._next_s:
            return False
        if self._rising_since is None:
            if floors.rises:
                self._rising_since = floors.samples
                return True
        elif not floors.rises:
            self._rising_since = None
        return floors.samples >= self._next

    def judge(self, records: int, limits: Sequence[Limit]) -> None:
        """Judge the samples so far, unless there is no new floor since the last time.

        limits: for the forecast alone.
        """
        floors = self._floors
        if self._judged == floors.samples // floors.width or len(floors) == 0:
            return
        self._judged = floors.samples // floors.width
        self._next_s = self._seen_s + PAUSE_S
        since = floors.samples - (self._rising_since or 0)
        more = max(self._policy.common.little * since, LEAST_MORE * floors.width)
        self._next = floors.samples + more
        series, context = self.series, Context(records=records)
        prepared = prepare(series, self._policy)
        decided = decide(prepared, self._policy, context)
        ahead = replace(context, limits=limits)
        self.finding = build_finding(series, prepared, decided, self._policy, ahead)
        self.last = self._seen_s, float(series.y[-1])
        watched = replace(context, merges=floors.merges)
        # Once found by the rules for many looks, it holds for as long as the verdict does.
        self.leaks = decided.verdict is Verdict.LEAK and (
            self.leaks or decide(prepared, self._watched, watched).verdict is Verdict.LEAK
        )

    @property
    def series(self) -> Series:
        """The samples so far as a recording has them."""
        floors, x, at_s = self._floors.values
        kind = AxisKind.STEP if self._stepped else AxisKind.SECONDS
        return Series(
            metric=self.metric,
            column=self.metric,
            role=self._role,
            unit=Unit.BYTES if self.metric.endswith("_bytes") else Unit.COUNT,
            axis=Axis(name="step" if self._stepped else "at_s", kind=kind),
            x=x,
            y=floors,
            at_s=at_s,
            process=self.process,
        )
