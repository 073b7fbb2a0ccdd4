"""Asks the probe in a running process for a census of memory, and waits for it."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdiag import safe_open
from memdiag.capture.probelink import channel
from memdiag.capture.probelink.census_file import read_answer, read_censuses, request_census
from memdiag.capture.probelink.guest_probe import attached_probe
from memdiag.capture.probelink.holder_file import read_holders
from memdiag.capture.probelink.source_lines import SourceFiles
from memdiag.errors import CannotMeasure, CannotWatch
from memdiag.probe import ring_format
from memdiag.values.holders import ProcessCensuses, ProcessHolders

# The probe looks for requests once a second; a step of the program may take longer than that, and a
# call in C that holds the interpreter's lock, too. Heuristic.
PATIENCE_S = 20.0
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The censuses of a process, and the places in it that grow; () if none do."""

    censuses: ProcessCensuses
    holders: tuple[ProcessHolders, ...]


def take_census(pid: int, *, attach: bool, patience_s: float = PATIENCE_S) -> Answer:
    """The censuses of process `pid`, the last one taken now.

    attach: load the probe into the process for this, unless it is there.
    Raises CannotWatch if the probe is not there or cannot be attached, CannotMeasure if it does not
    answer in time.
    """
    with ExitStack() as stack:
        directory = channel.find_channel(pid)
        ring = None if directory is None else channel.find_ring(directory, pid)
        if ring is None and attach:
            probe = stack.enter_context(attached_probe(pid))
            ring = channel.find_ring(probe.directory, pid)
        if ring is None:
            remedy = "try again" if attach else "start it with `memdiag run`, or add --attach"
            raise CannotWatch(f"process {pid} is not there, or has no probe", remedy=remedy)
        return _asked(ring, pid, patience_s)


def answer(ring: str, *, dir_fd: int, owners: Collection[int], pid: int) -> Answer | None:
    """What the probe of a ring has written; None if there is no census."""
    facts = channel.facts_of(ring, dir_fd, owners)
    if facts is None:
        return None
    about: dict[str, Any] = {"dir_fd": dir_fd, "owners": owners, "pid": pid}
    about["began_at_s"] = facts.created_s
    censuses = read_censuses(ring, **about)
    if censuses is None or not censuses.censuses:
        return None
    found = read_holders(ring, **about)
    if found is None:
        return Answer(censuses=censuses, holders=())
    holders, files = found
    # Files of another user's program are not read.
    sources = SourceFiles(files if os.fstat(dir_fd).st_uid == os.geteuid() else ())
    return Answer(censuses=censuses, holders=(channel.located(holders, sources),))


def _asked(ring: Path, pid: int, patience_s: float) -> Answer:
    owners = channel.owners_of(pid)
    until_s = time.monotonic() + patience_s
    try:
        fd = safe_open.open_private(ring.parent, owners=owners)
    except OSError as error:
        raise CannotMeasure(f"the files of its probe cannot be read: {error.strerror}") from error
    with safe_open.closing(fd):
        token = request_census(ring.name, "request", dir_fd=fd)
        while time.monotonic() < until_s and channel.owners_of(pid):
            if read_answer(ring.name, dir_fd=fd, owners=owners) == token:
                found = answer(ring.name, dir_fd=fd, owners=owners, pid=pid)
                if found is not None:
                    return found
            time.sleep(_LOOK_S)
        request = ring.name.removesuffix(ring_format.SUFFIX) + ring_format.REQUEST_SUFFIX
        safe_open.remove(request, dir_fd=fd)
    raise CannotMeasure(
        f"the probe in process {pid} did not answer within {patience_s:g} s",
        remedy="try again once the process runs Python code: its main thread may be in a long call",
    )
