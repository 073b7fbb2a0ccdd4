"""What is sent to the destinations of `--to`: rows of readings, the verdict so far, the report."""

from __future__ import annotations

import contextlib
import platform
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memdiag import __version__
from memdiag.cli.measurement.destination_process import DestinationProcesses
from memdiag.cli.output.messages import in_words, say
from memdiag.values.measurements import AxisKind, Limit, Sample
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from memdiag.destinations.messages import Judgment
    from memdiag.values.findings import Diagnosis, Finding

# A row every sampling interval at first, and less often in a longer run: 600 rows of the first
# minute, and some 10,000 of a day. Heuristic.
_ROWS, _LONGEST_S = 600, 10.0
# Processes that have series of their own: the others come and go, and trackers keep each name.
_KEPT = re.compile(r"tree|main|rank\d+")
_MOST_PROCESSES = 64
_END_S = 5.0  # how long a destination may take to accept the report


class TrackerFeed:
    """Sends what was measured, at a pace that trackers can take."""

    def __init__(self, trackers: DestinationProcesses, interval_s: float) -> None:
        self._trackers, self._interval_s = trackers, interval_s
        self._readings: dict[str, dict[str, float]] = {}
        self._next_s = 0.0
        self._step: int | None = None
        self._phase = ""
        self._judgment: Judgment | None = None

    @classmethod
    def of(
        cls,
        trackers: DestinationProcesses | None,
        interval_s: float,
        command: Sequence[str],
        pid: int,
    ) -> TrackerFeed | None:
        """The feed of a target that runs from now on; None without destinations."""
        if trackers is None or not trackers.pids:
            return None
        feed = cls(trackers, interval_s)
        feed._begin(command, pid)
        return feed

    def _begin(self, command: Sequence[str], pid: int) -> None:
        from memdiag.destinations.messages import Run
        from memdiag.recording.native.runs import name_of

        program = name_of(command)
        self._trackers.send(
            Run(
                name=f"{program}-{pid}",
                program=program,
                pid=pid,
                host=platform.node(),
                started_s=time.time(),
                memdiag=__version__,
            )
        )

    def take(self, samples: Sequence[Sample], elapsed_s: float, *, is_last: bool = False) -> bool:
        """Take samples. Returns True if a row was due, as the last one is, and sent."""
        from memdiag.destinations.messages import Row

        for sample in samples:
            if self._step is None and sample.step is not None:
                self._readings = {}  # from before the first step
            self._step, self._phase = sample.step, sample.phase
            name = sample.process
            is_kept = name in self._readings or len(self._readings) < _MOST_PROCESSES
            if _KEPT.fullmatch(name) and is_kept:
                self._readings.setdefault(name, {}).update(sample.readings)
        is_due = is_last or elapsed_s >= self._next_s
        if not is_due or not self._readings:
            return False
        # Half an interval, since ticks are not exact.
        self._next_s = elapsed_s + max(self._interval_s / 2, min(elapsed_s / _ROWS, _LONGEST_S))
        self._trackers.send(
            Row(
                at_s=elapsed_s,
                step=self._step,
                phase=self._phase,
                readings=self._readings,
            )
        )
        self._readings = {}
        return True

    def judge(
        self, found: Finding | None, limits: Sequence[Limit], full_in_s: float | None
    ) -> None:
        """Send the verdict so far, if it is another one. full_in_s: until the first limit."""
        from memdiag.destinations.messages import Judgment

        limits_bytes = {limit.name: limit.value_bytes for limit in limits}
        self._trackers.limits_bytes = limits_bytes
        if found is None:
            judgment = Judgment(verdict=Verdict.INCONCLUSIVE.value, limits_bytes=limits_bytes)
        else:
            is_leak = found.verdict is Verdict.LEAK
            judgment = _judgment(found, found.verdict, found.confidence, limits_bytes)
            if is_leak and full_in_s is not None:
                judgment = _replaced(judgment, full_in_s=full_in_s)
        if judgment != self._judgment:
            self._judgment = judgment
            self._trackers.send(judgment)


def report_to(trackers: DestinationProcesses, diagnosis: Diagnosis, code: int) -> None:
    """Send the verdict and the report as files. A report that cannot be made is left out."""
    if not trackers.pids:
        return
    from memdiag.destinations.messages import End

    found = diagnosis.recordings[0]
    judgment = _judgment(found.deciding, found.verdict, found.confidence, trackers.limits_bytes)
    first = found.first_limit
    if first is not None and first.left_s is not None and found.verdict is Verdict.LEAK:
        judgment = _replaced(judgment, full_in_s=first.left_s.value)
    try:
        files = _files(trackers, diagnosis, code)
    except Exception as error:
        files = {}
        say(f"--to: the report could not be made: {in_words(error)}")
    end = End(judgment=_replaced(judgment, is_final=True), files=files)
    trackers.send(end, patience_s=_END_S)


def _judgment(
    found: Finding | None, verdict: Verdict, confidence: float, limits_bytes: dict[str, int]
) -> Judgment:
    from memdiag.destinations.messages import Judgment

    if found is None:
        return Judgment(verdict=verdict.value, limits_bytes=limits_bytes)
    is_by_step = found.axis.kind is AxisKind.STEP
    growth_x, growth_s = found.growth_per_x, found.growth_per_s
    if growth_s is None and found.axis.kind is AxisKind.SECONDS:
        growth_s = growth_x
    return Judgment(
        verdict=verdict.value,
        confidence=confidence,
        metric=found.metric,
        process=found.process,
        unit=found.unit.value,
        growth_per_step=growth_x.value if growth_x is not None and is_by_step else None,
        growth_per_s=None if growth_s is None else growth_s.value,
        onset_step=found.onset_x.value if found.onset_x is not None and is_by_step else None,
        limits_bytes=limits_bytes,
    )


def _replaced(judgment: Judgment, **changes: object) -> Judgment:
    import msgspec

    return msgspec.structs.replace(judgment, **changes)


def _files(trackers: DestinationProcesses, diagnosis: Diagnosis, code: int) -> dict[str, str]:
    """The report as HTML, and its picture if matplotlib is installed: paths by name."""
    from memdiag.errors import UsageError
    from memdiag.report.formats.files import FORMATS, Outcome

    if trackers.directory is None:
        return {}
    found = {}
    outcome = Outcome(diagnosis=diagnosis, exit_code=code)
    for option, name in (("--html", "memdiag.html"), ("--png", "memdiag.png")):
        with contextlib.suppress(UsageError):
            FORMATS[option].require("")
            content = FORMATS[option].render(outcome)
            path = trackers.directory / name
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            found[name] = str(path)
    return found
