"""The live verdict, and the confirmation by the rules of the report."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memdiag.cli import lazy_imports
from memdiag.cli.measurement.judge_process import JUDGING
from memdiag.cli.options.gate import Gate
from memdiag.cli.output.conclude import diagnosed
from memdiag.cli.output.messages import in_words, say
from memdiag.report.text import rates
from memdiag.values.measurements import Limit, Sample, Unit
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from memdiag.analysis.live.sequential import LimitAhead, LiveVerdict
    from memdiag.recording.native.atomic_file import RecordingFiles
    from memdiag.values.findings import Finding

# Starts the call and returns what says whether it still runs.
Start = Callable[[Callable[[], None]], Callable[[], bool]]


def in_thread(call: Callable[[], None]) -> Callable[[], bool]:
    """Start `call` in a thread that does not keep memdiag from ending."""
    thread = threading.Thread(target=call, name=JUDGING, daemon=True)
    thread.start()
    return thread.is_alive


def live_verdict(limits: Callable[[], Sequence[Limit]], *, is_required: bool) -> LiveVerdict | None:
    """The verdict while the target runs. Raises only if it is required: a run continues without.

    limits: those that apply now.
    """
    try:
        lazy_imports.import_numpy()
        from memdiag.analysis.live.sequential import LiveVerdict

        return LiveVerdict(limits=limits)
    except Exception as error:
        if is_required:
            raise
        say(f"the live verdict is not available: {in_words(error)}")
        return None


def growth_text(found: Finding) -> str:
    """The growth rate for the status line, "" if nothing grows."""
    if found.growth_per_x is None:
        return ""
    brief = rates.rate(found.growth_per_x, found.axis, found.unit).brief()
    return brief if found.unit is Unit.BYTES else f"{brief} ({found.metric})"


class ConfirmedVerdict:
    """The live verdict as it is shown and acted on: a LEAK once the rules of the report agree.

    The live verdict keeps bins of a long run, not all of its readings, so the two may differ in
    close cases: no leak that the report would deny is shown, and no job is stopped for one. Each
    time that the live verdict finds a leak anew, the rules of the report are asked too, in a thread
    beside the measurement. While they are, a leak that was shown stays; what they said of an
    earlier state is not used otherwise.
    """

    def __init__(
        self,
        live: LiveVerdict,
        judge: Callable[[], Verdict],
        *,
        flush: Callable[[], None],
        start: Start = in_thread,
    ) -> None:
        """judge: the verdict of the report on what was recorded until `flush` was called, which
        writes everything that the report is made of."""
        self._live, self._judge, self._flush, self._start = live, judge, flush, start
        self._is_judging: Callable[[], bool] = lambda: False
        self._judged: Finding | None = None
        self._is_confirmed = self._is_shown = False

    def add(self, sample: Sample) -> None:
        """Take one sample."""
        self._live.add(sample)

    def finding(self) -> Finding | None:
        """The finding that decides so far, INCONCLUSIVE while its LEAK is not confirmed; None
        before there is any. Never waits: call it again."""
        found = self._live.finding()
        if found is None or found.verdict is not Verdict.LEAK:
            self._is_shown = False
            return found
        if found is not self._judged and not self._is_judging():
            self._judged = found
            self._flush()
            self._is_judging = self._start(self._confirm)
        if found is self._judged and not self._is_judging():
            self._is_shown = self._is_confirmed
        return found if self._is_shown else replace(found, verdict=Verdict.INCONCLUSIVE)

    def findings(self) -> dict[tuple[str, str], Finding]:
        """The finding of each series, by process and metric."""
        return self._live.findings()

    def limit_ahead(self) -> LimitAhead | None:
        """The forecast of the confirmed leak that `finding` has just returned."""
        return self._live.limit_ahead

    def _confirm(self) -> None:
        try:
            self._is_confirmed = self._judge() is Verdict.LEAK
        except Exception:  # the report will show what is wrong
            self._is_confirmed = False


def verdict_on(files: RecordingFiles) -> Verdict:
    """The verdict that the report would give on what was recorded so far."""
    return diagnosed(files, Gate(), None).verdict
