"""The live verdict, in the words of the status line, and what the final rules make of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from memdiag.analysis.policy import DEFAULT
from memdiag.cli import lazy_imports
from memdiag.cli.measurement.loop import Outlook, in_words
from memdiag.cli.options.recording_options import Options
from memdiag.cli.output.conclude import diagnosed, say
from memdiag.report.text import rates
from memdiag.values.findings import Interval
from memdiag.values.measurements import Axis, AxisKind, Sample, Unit
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from memdiag.recording.native.atomic_file import RecordingFiles

# Between two looks of the final rules, as a share of the time so far: they need something new to
# judge. Heuristic.
_NEXT_LOOK = 1.1


class Leaning:
    """Feeds `memdiag.analysis.live.sequential.LiveVerdict`."""

    def __init__(self) -> None:
        lazy_imports.import_numpy()
        from memdiag.analysis.live.sequential import LiveVerdict

        self._verdict = LiveVerdict(DEFAULT)

    def add(self, sample: Sample) -> None:
        """Take one more sample into account."""
        self._verdict.add(sample)

    def outlook(self) -> Outlook | None:
        """What it looks like now."""
        now = self._verdict.leaning()
        if not now.metric:
            return None
        return Outlook(verdict=now.verdict, growth=_growth(now.growth_per_x, now.axis, now.metric))


class FinalRules:
    """Judges what was recorded so far, as the report will, beside the measurement.

    The live verdict knows nothing of the rules across series: a job must not be stopped for a leak
    that the report then denies.
    """

    def __init__(self, files: RecordingFiles) -> None:
        self._files = files
        self._thread: threading.Thread | None = None
        self._verdict: Verdict | None = None
        self._next_s = 0.0

    def agree(self, elapsed_s: float, flush: Callable[[], None]) -> bool:
        """Return True once they have found a leak. Never waits: call it until then.

        elapsed_s: since the recording began. flush: has all that was recorded written.
        """
        if self._thread is None:
            if elapsed_s >= self._next_s:
                flush()
                self._thread = threading.Thread(target=self._judge, daemon=True)
                self._thread.start()
        elif not self._thread.is_alive():
            self._thread = None
            self._next_s = elapsed_s * _NEXT_LOOK
        return self._verdict is Verdict.LEAK

    def _judge(self) -> None:
        try:
            self._verdict = diagnosed(self._files, None).verdict
        except Exception:  # the report will say what is wrong
            self._verdict = None


def _growth(growth: Interval | None, kind: AxisKind, metric: str) -> str:
    if growth is None:
        return ""
    unit = Unit.BYTES if metric.endswith("_bytes") else Unit.COUNT
    brief = rates.rate(growth, Axis(name=kind.value, kind=kind), unit).brief()
    return brief if unit is Unit.BYTES else f"{brief} ({metric})"


def leaning(options: Options) -> Leaning | None:
    """The live verdict. Nothing but `--stop-on` needs it, so a run goes on without it."""
    try:
        return Leaning()
    except Exception as error:
        if options.stop_on_leak:
            raise
        say(f"there is no live verdict: {in_words(error)}")
        return None
