"""The live verdict, in the words of the status line."""

from __future__ import annotations

from memdiag.cli import loading
from memdiag.cli.conclude import say
from memdiag.cli.measure import Outlook, in_words
from memdiag.cli.options import Options
from memdiag.findings import Interval
from memdiag.model import Axis, AxisKind, Sample, Unit
from memdiag.policy import DEFAULT
from memdiag.report import rates


class Leaning:
    """Feeds `memdiag.analysis.live.LiveVerdict`."""

    def __init__(self) -> None:
        loading.import_numpy()
        from memdiag.analysis.live import LiveVerdict

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
