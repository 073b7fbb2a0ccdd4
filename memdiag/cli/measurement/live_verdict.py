"""The live verdict, and the confirmation by the rules of the report."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from memdiag.cli import lazy_imports
from memdiag.cli.options.gate import Gate
from memdiag.cli.options.recording_options import RecordingOptions
from memdiag.cli.output.conclude import diagnosed
from memdiag.cli.output.messages import in_words, say
from memdiag.report.text import rates
from memdiag.values.measurements import Unit
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from memdiag.analysis.live.sequential import LiveVerdict
    from memdiag.recording.native.atomic_file import RecordingFiles
    from memdiag.values.findings import Finding

# Time until the final rules run again, as a factor of the time so far: they need new data.
# Heuristic.
_NEXT_LOOK = 1.1


def live_verdict(options: RecordingOptions) -> LiveVerdict | None:
    """The verdict while the target runs. Only `--stop-on` requires it: a run continues without."""
    try:
        lazy_imports.import_numpy()
        from memdiag.analysis.live.sequential import LiveVerdict

        return LiveVerdict()
    except Exception as error:
        if options.stop_on_leak:
            raise
        say(f"the live verdict is not available: {in_words(error)}")
        return None


def growth_text(found: Finding) -> str:
    """The growth rate for the status line, "" if nothing grows."""
    if found.growth_per_x is None:
        return ""
    brief = rates.rate(found.growth_per_x, found.axis, found.unit).brief()
    return brief if found.unit is Unit.BYTES else f"{brief} ({found.metric})"


class FinalRules:
    """Judges what was recorded so far, as the report will, in a thread beside the measurement.

    The live verdict keeps bins of a long run, not all of its readings, so the two may differ in
    close cases: no leak that the report would deny is shown, and no job is stopped for one.
    """

    def __init__(self, files: RecordingFiles) -> None:
        self._files = files
        self._thread: threading.Thread | None = None
        self._verdict: Verdict | None = None
        self._next_s = 0.0

    def agree(self, elapsed_s: float, flush: Callable[[], None]) -> bool:
        """Return True once they have found a leak. Never waits: call it until then.

        elapsed_s: since the recording began. flush: writes everything that was recorded.
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
            self._verdict = diagnosed(self._files, Gate(), None).verdict
        except Exception:  # the report will show what is wrong
            self._verdict = None
