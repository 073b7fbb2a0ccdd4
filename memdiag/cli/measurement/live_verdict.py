"""The live verdict, in the words of the status line, and what the final rules make of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from memdiag.cli import lazy_imports
from memdiag.cli.measurement.loop import in_words
from memdiag.cli.options.recording_options import Options
from memdiag.cli.output.conclude import diagnosed, say
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from memdiag.analysis.live.sequential import LiveVerdict
    from memdiag.recording.native.atomic_file import RecordingFiles

# Between two looks of the final rules, as a share of the time so far: they need something new to
# judge. Heuristic.
_NEXT_LOOK = 1.1


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


def live_verdict(options: Options) -> LiveVerdict | None:
    """The live verdict. Only `--stop-on` needs it, so a run continues without it."""
    try:
        lazy_imports.import_numpy()
        from memdiag.analysis.live.sequential import LiveVerdict

        return LiveVerdict()
    except Exception as error:
        if options.stop_on_leak:
            raise
        say(f"there is no live verdict: {in_words(error)}")
        return None
