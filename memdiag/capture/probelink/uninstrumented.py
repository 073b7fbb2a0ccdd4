"""Finds the processes of the tree without the probe, and why, as far as worth reporting."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from memdiag.capture.probelink.why_uninstrumented import (
    DID_NOT_START,
    StartFacts,
    explain,
    read_start_facts,
)
from memdiag.capture.process.labels import LAUNCHERS, MAIN
from memdiag.capture.process.tree import Process, ProcessId
from memdiag.values.measurements import Missing, Unavailable

# The name under which a recording reports that the probe's readings are missing.
METRIC = "probe_readings"
# A process is inspected at these ages: after shells and shims have started the program, when it has
# rows of its own, and after its startup. Heuristic.
_LOOKS_AT_S = (0.2, 1.0, 5.0)
# The probe needs some tenths of a second on a busy machine.
_STARTED_S = 1.0
_AT_MOST = 3


@dataclass(slots=True, kw_only=True)
class _Case:
    """One process. looks: how many of _LOOKS_AT_S are done."""

    process: Process
    started: StartFacts | None = None
    looks: int = 0
    age_s: float = 0.0


class UninstrumentedProcesses:
    """Inspects each process a few times while it lives, and decides at the end what to report."""

    def __init__(self, root: int, directory: Path | None) -> None:
        """directory: the channel of the tree; None if it was not started for one."""
        self._root = root
        self._directory = directory
        self._cases: dict[ProcessId, _Case] = {}

    def look(self, process: Process, age_s: float) -> bool:
        """Inspect a live process, first seen `age_s` ago, if due. False if it is done."""
        case = self._cases.get(process.id)
        if case is None:
            case = self._cases[process.id] = _Case(process=process)
        case.age_s = age_s
        renamed = case.looks > 0 and case.process.name != process.name
        due = case.looks < len(_LOOKS_AT_S) and age_s >= _LOOKS_AT_S[case.looks]
        if due or renamed:
            case.process = process
            case.started = read_start_facts(process.id.pid) or case.started
            case.looks = sum(age_s >= at_s for at_s in _LOOKS_AT_S)
        return case.looks < len(_LOOKS_AT_S)

    def forget(self, process: Process) -> None:
        """Drop a process that has ended without rows of its own."""
        self._cases.pop(process.id, None)

    def missing(
        self, inside: Collection[ProcessId], label: Callable[[Process], str]
    ) -> tuple[Missing, ...]:
        """The processes without the probe, each reason once, as far as worth reporting.

        inside: the processes that have written to the channel. A process that was forked by one of
        these and has not written anything has the probe too.
        """
        known = [self._cases[one].started for one in inside if one in self._cases]
        cases = [
            case
            for identity, case in self._cases.items()
            if identity not in inside and case.started is not None and case.started not in known
        ]
        reported = self._worth_reporting(cases, alone=not inside)
        return _once_each((label(case.process), self._reason(case)) for case in reported)

    def _worth_reporting(self, cases: list[_Case], *, alone: bool) -> list[_Case]:
        """The cases worth reporting. alone: no process has the probe."""
        pythons = [case for case in cases if case.started is not None and case.started.is_python]
        if not alone:  # short-lived helpers are not the training
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
        assert case.started is not None
        return explain(case.started, self._directory)


def _once_each(reasons: Iterable[tuple[str, Unavailable]]) -> tuple[Missing, ...]:
    """One entry per reason, for the first process with it, "main" first."""
    owners: dict[Unavailable, list[str]] = {}
    for process, why in sorted(reasons, key=lambda reason: reason[0] != MAIN):
        owners.setdefault(why, []).append(process)
    return tuple(
        Missing(metric=METRIC, process=processes[0], why=shared(why, len(processes)))
        for why, processes in list(owners.items())[:_AT_MOST]
    )


def shared(why: Unavailable, processes: int) -> Unavailable:
    """A reason that holds for this many processes and is reported for one of them."""
    if processes < 2:
        return why
    more = "one more process" if processes == 2 else f"{processes - 1} more processes"
    return replace(why, reason=f"{why.reason} (and so for {more})")
