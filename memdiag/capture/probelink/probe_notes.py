"""Notes of the probe: reasons for missing metrics, and other sentences.

A note is "METRIC: why" if it explains a missing metric, else a sentence. It comes from the target,
so it is untrusted.
"""

from __future__ import annotations

from memdiag.capture.probelink.uninstrumented import shared
from memdiag.probe import ring_format
from memdiag.values.measurements import Missing, Unavailable
from memdiag.values.sanitize import printable

_METRICS = frozenset({*ring_format.READINGS, *ring_format.TENSOR_COUNT_READINGS, "step", "phase"})
# A program that writes a new note at every step must not fill our memory.
_AT_MOST = 64


class Notes:
    """The notes of all processes, each text once."""

    def __init__(self) -> None:
        self._processes: dict[str, list[str]] = {}

    def take(self, text: str, process: str) -> None:
        """Add a note of the process with this label."""
        if text in self._processes or len(self._processes) < _AT_MOST:
            processes = self._processes.setdefault(text, [])
            if process not in processes and len(processes) < _AT_MOST:
                processes.append(process)

    def missing(self) -> tuple[Missing, ...]:
        """The notes that explain why a metric is missing."""
        found = []
        for text, processes in self._processes.items():
            metric, why = _split(text)
            if metric:
                reason = shared(Unavailable(reason=printable(why)), len(processes))
                found.append(Missing(metric=metric, process=processes[0], why=reason))
        return tuple(found)

    def sentences(self) -> tuple[str, ...]:
        """The other notes, with their process."""
        return tuple(
            f"{processes[0]}: {printable(text)}"
            for text, processes in self._processes.items()
            if not _split(text)[0]
        )


def _split(text: str) -> tuple[str, str]:
    """The metric of a note ("" for none), and its text."""
    metric, colon, why = text.partition(": ")
    return (metric, why) if colon and metric in _METRICS else ("", text)
