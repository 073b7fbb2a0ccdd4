"""The live verdict, in the words of the status line."""

from __future__ import annotations

from memdiag.cli.conclude import say
from memdiag.cli.measure import Outlook, in_words
from memdiag.cli.options import Options
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
        return None if leaning is None else Outlook(verdict=leaning.verdict)


def leaning(options: Options) -> Leaning | None:
    """The live verdict. Nothing but `--stop-on` needs it, so a run goes on without it."""
    try:
        return Leaning()
    except Exception as error:
        if options.stop_on_leak:
            raise
        say(f"there is no live verdict: {in_words(error)}")
        return None
