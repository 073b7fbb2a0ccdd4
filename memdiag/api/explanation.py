"""What is in memory in this process, for a notebook or a breakpoint: `memdiag.explain()`."""

from __future__ import annotations

import atexit
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdiag import safe_open
from memdiag.analysis.cause.in_memory import grown_places, last_census
from memdiag.capture.probelink import channel
from memdiag.capture.probelink.census_request import answer
from memdiag.errors import CannotMeasure
from memdiag.probe.census_sampler import CensusSampler
from memdiag.probe.holder_sampler import HolderSampler
from memdiag.probe.session import Session
from memdiag.report.sections import in_memory
from memdiag.report.text.screen import Screen
from memdiag.values.findings import CensusFinding, GrownPlace

_WIDTH = 100


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation:
    """What is in memory now. Its `repr` is a report.

    census: the largest tensors and arrays with their holders, and objects by type, with the growth
    since the first call. grown: the places in the program that grew, from the third call on; under
    `memdiag run` since the start.
    """

    census: CensusFinding
    grown: tuple[GrownPlace, ...]

    def __repr__(self) -> str:
        screen = Screen(width=_WIDTH)
        lines = in_memory.of_process(self.census, screen) + in_memory.places(self.grown, screen)
        return "\n".join(line.plain for line in lines)


def explain() -> Explanation:
    """What is in memory in this process, and what holds it. It takes some 0.2 s.

    Raises CaptureError if it cannot be counted.
    """
    session: Any = getattr(sys.modules.get("_memdiag_probe"), "listener", None)
    if getattr(session, "take_census", None) is None:
        session = _own_session()
    session.take_census()
    ring = Path(session.ring_path())
    owners = (os.geteuid(),)
    with safe_open.closing(safe_open.open_private(ring.parent, owners=owners)) as fd:
        found = answer(ring.name, dir_fd=fd, owners=owners, pid=os.getpid())
    if found is None:
        raise CannotMeasure("the memory of this process could not be counted")
    return Explanation(census=last_census(found.censuses), grown=grown_places(found.holders))


_sessions: dict[int, Session] = {}  # by pid: a forked child gets its own


def _own_session() -> Any:
    """A session that only counts, for a process without the probe."""
    session = _sessions.get(os.getpid())
    if session is None:
        directory = channel.create()
        atexit.register(channel.remove, directory)
        session = _sessions[os.getpid()] = Session(str(directory))
        holders = HolderSampler(session)
        session.take_census = CensusSampler(session, lambda: holders).take_now
    return session
