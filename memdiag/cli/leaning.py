"""The live verdict, in the words of the status line."""

from __future__ import annotations

from memdiag.cli.measure import Outlook
from memdiag.findings import Verdict
from memdiag.model import Sample
from memdiag.policy import DEFAULT


class Leaning:
    """Feeds `memdiag.analysis.live.LiveVerdict`."""

    def __init__(self) -> None:
        from memdiag.analysis.live import LiveVerdict

        self._verdict = LiveVerdict(DEFAULT)

    def add(self, sample: Sample) -> None:
        """Take one more sample into account."""
        self._verdict.add(sample)

    def outlook(self) -> Outlook | None:
        """What it looks like now."""
        leaning = self._verdict.leaning()
        return Outlook(verdict=Verdict(leaning.verdict))
