"""What the target's own processes said of want of memory, for when it has ended.

Two witnesses: the exception that ended a program, told by the probe at its exit, and the
allocator's count of failed allocations, for programs that end without the interpreter's farewell
(workers of multiprocessing, launchers that catch everything).
"""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.capture.probelink.ring_reader import Event, Kind
from memdiag.capture.process.tree import ProcessId

# An allocation that failed longer before the end was lived with: batch sizes are found so. Chosen.
_RECENT_S = 10.0
_DEVICE = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWords:
    """A process ended, or is about to, because memory could not be had.

    process: as the recording labels it. text: what its exception said (untrusted), "" where only
    the allocator's count tells. on_device: of a device, else of the host.
    held_bytes: of that memory when it failed, None where unknown.
    """

    process: str
    at_s: float
    text: str
    on_device: bool
    held_bytes: int | None


class Listener:
    """Remembers the latest of each kind."""

    def __init__(self) -> None:
        self._said: LastWords | None = None
        self._failed: LastWords | None = None
        self._ooms: dict[ProcessId, int] = {}
        self._held: dict[ProcessId, int] = {}

    def hear(self, event: Event, process: str) -> None:
        """Take note of an event of a process with this label."""
        held = event.readings.get("vram_reserved_bytes")
        if held is not None:
            self._held[event.process] = held
        if event.kind is Kind.OUT_OF_MEMORY:
            on_device = event.value == _DEVICE
            self._said = LastWords(
                process=process,
                at_s=event.at_s,
                text=event.name,
                on_device=on_device,
                held_bytes=self._held.get(event.process) if on_device else event.rss_bytes,
            )
        elif event.kind is Kind.ALLOCATOR:
            self._count(event, process)

    def last_words(self, ended_at_s: float) -> LastWords | None:
        """What explains an end at this moment (on the events' clock), if anything does."""
        if self._said is not None:
            return self._said
        failed = self._failed
        recent = failed is not None and ended_at_s - failed.at_s <= _RECENT_S
        return failed if recent else None

    def _count(self, event: Event, process: str) -> None:
        ooms = sum(value for metric, value in event.readings.items() if metric.endswith("_ooms"))
        if ooms > self._ooms.get(event.process, 0):
            self._failed = LastWords(
                process=process,
                at_s=event.at_s,
                text="",
                on_device=True,
                held_bytes=self._held.get(event.process),
            )
        self._ooms[event.process] = max(ooms, self._ooms.get(event.process, 0))
