"""Which processes of the tree the probe is not in, why, and whether that is worth a word."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from memdiag.capture.probelink.why_uninstrumented import DID_NOT_START, Suspect, explain, look_at
from memdiag.capture.process.labels import LAUNCHERS, MAIN
from memdiag.capture.process.tree import Process, ProcessId
from memdiag.values.measurements import Missing, Unavailable

# The name under which a recording says that what the probe would have told is missing.
METRIC = "probe_readings"
# A process is looked at when it has been seen for so long: once it is past what shells and shims
# do before the program, when it has rows of its own, and when it has settled. Chosen.
_LOOKS_AT_S = (0.2, 1.0, 5.0)
# The probe needs some tenths of a second on a busy machine.
_STARTED_S = 1.0
_AT_MOST = 3


@dataclass(slots=True, kw_only=True)
class _Case:
    """What is known of one process. looks: how many of _LOOKS_AT_S were taken."""

    process: Process
    suspect: Suspect | None = None
    looks: int = 0
    age_s: float = 0.0


class Outsiders:
    """Looks at each process a few times while it lives, and judges at the end."""

    def __init__(self, root: int, directory: Path | None) -> None:
        """directory: the channel of the tree; None where it was not started for any."""
        self._root = root
        self._directory = directory
        self._cases: dict[ProcessId, _Case] = {}

    def look(self, process: Process, age_s: float) -> bool:
        """Take note of a live process that was first seen `age_s` ago; whether to look again."""
        case = self._cases.get(process.id)
        if case is None:
            case = self._cases[process.id] = _Case(process=process)
        case.age_s = age_s
        renamed = case.looks > 0 and case.process.name != process.name
        due = case.looks < len(_LOOKS_AT_S) and age_s >= _LOOKS_AT_S[case.looks]
        if due or renamed:
            case.process = process
            case.suspect = look_at(process.id.pid) or case.suspect
            case.looks = sum(age_s >= at_s for at_s in _LOOKS_AT_S)
        return case.looks < len(_LOOKS_AT_S)

    def forget(self, process: Process) -> None:
        """A process ended that has no rows of its own."""
        self._cases.pop(process.id, None)

    def missing(
        self, inside: Collection[ProcessId], label: Callable[[Process], str]
    ) -> tuple[Missing, ...]:
        """Which processes have no probe, and why: each reason once, where it matters.

        inside: the processes that did write to the channel. A process that was forked by one of
        these and has had nothing to say is inside as well.
        """
        known = [self._cases[one].suspect for one in inside if one in self._cases]
        cases = [
            case
            for identity, case in self._cases.items()
            if identity not in inside and case.suspect is not None and case.suspect not in known
        ]
        told = self._telling(cases, alone=not inside)
        return _once_each((label(case.process), self._reason(case)) for case in told)

    def _telling(self, cases: list[_Case], *, alone: bool) -> list[_Case]:
        """Those worth a word. alone: the probe is in no process at all."""
        pythons = [case for case in cases if case.suspect is not None and case.suspect.is_python]
        if not alone:  # helpers that soon go are nobody's training
            return [case for case in pythons if case.age_s >= _LOOKS_AT_S[-1]]
        pythons = [case for case in pythons if self._has_started(case)]
        if pythons:
            return pythons
        others = [case for case in cases if case.process.name not in LAUNCHERS]
        return (others or cases)[:1]

    def _has_started(self, case: _Case) -> bool:
        is_known = self._reason(case) is not DID_NOT_START
        return case.age_s >= _STARTED_S or (is_known and case.process.id.pid == self._root)

    def _reason(self, case: _Case) -> Unavailable:
        assert case.suspect is not None
        return explain(case.suspect, self._directory)


def _once_each(reasons: Iterable[tuple[str, Unavailable]]) -> tuple[Missing, ...]:
    """One entry for each reason, for the first process that has it; main comes first."""
    owners: dict[Unavailable, list[str]] = {}
    for process, why in sorted(reasons, key=lambda told: told[0] != MAIN):
        owners.setdefault(why, []).append(process)
    return tuple(
        Missing(metric=METRIC, process=processes[0], why=shared(why, len(processes)))
        for why, processes in list(owners.items())[:_AT_MOST]
    )


def shared(why: Unavailable, processes: int) -> Unavailable:
    """The reason, where it is the same for so many processes and given for one."""
    if processes < 2:
        return why
    more = "one more process" if processes == 2 else f"{processes - 1} more processes"
    return replace(why, reason=f"{why.reason} (and so for {more})")
