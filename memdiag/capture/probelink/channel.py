"""The channel from the target's probes and tags to memdiag: a private directory of rings.

The process that starts the target makes the directory, and passes it on in an environment variable
that children inherit. Readers are passive: the target does not wait for them or notice their end.

A ring is accepted only if nobody but the target's user or root can have made it: its directory
belongs to one of them and nobody else may enter it, and it is a regular file of theirs.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import psutil

from memdiag import safe_open
from memdiag.capture.probelink.census_file import read_answer, read_censuses, request_census
from memdiag.capture.probelink.holder_file import read_holders
from memdiag.capture.probelink.intervention_file import read_interventions
from memdiag.capture.probelink.probe_files import leave_file
from memdiag.capture.probelink.ring_reader import Event, Probed, RingReader
from memdiag.capture.probelink.source_lines import SourceFiles
from memdiag.capture.process.attach import environment
from memdiag.capture.process.linux_procfs import parse_stat
from memdiag.capture.process.tree import ProcessId
from memdiag.errors import CannotMeasure
from memdiag.probe import ring_format
from memdiag.probe.arm import INJECTED
from memdiag.values.holders import ProcessCensuses, ProcessHolders, ProcessInterventions

_HAS_PROC = Path("/proc/self/stat").exists()
# The rings of dead processes are read once per this many drains: their last records were read
# already, but a live process of another pid namespace looks dead from here.
_DRAINS_PER_LATE_LOOK = 32
# Limits for hostile directories: rings followed at once, and channels of dead runs that one run
# removes. Heuristic: a year of epochs with eight new workers each stays below.
_MOST_RINGS, _MOST_STALE = 65_536, 200
# Processes whose growing places are recorded, the last ones. Heuristic.
_MOST_HOLDER_FILES = 64
# Processes whose censuses or interventions are recorded, those with the last ones. Heuristic.
_MOST_FILES = 16
_LOOK_S = 0.02
T = TypeVar("T")


def create(base: Path | None = None) -> Path:
    """Make a new private (0700) directory for a channel.

    base: where to make it, by default `memdiag` in the user's runtime directory
    (XDG_RUNTIME_DIR), else `memdiag-UID` in the directory for temporary files.
    Raises CannotMeasure if nothing can be written.
    """
    base = base or bases(os.getuid())[0]
    name = f"{os.getpid()}-{_started(os.getpid()) or 0}-{secrets.token_hex(4)}"
    try:
        try:
            with contextlib.suppress(FileExistsError):
                base.mkdir(mode=0o700, parents=True)
            fd = safe_open.open_private(base, owners=(os.geteuid(),))
        except OSError:  # the name is taken by somebody else
            base = Path(tempfile.mkdtemp(prefix="memdiag-"))
            fd = safe_open.open_private(base, owners=(os.geteuid(),))
        with safe_open.closing(fd):
            os.mkdir(name, 0o700, dir_fd=fd)
    except OSError as error:
        raise CannotMeasure(
            f"no private directory could be made under {base}: {error.strerror}",
            remedy="set TMPDIR to a writable directory",
        ) from error
    return base / name


def prepare(environ: Mapping[str, str], directory: Path) -> dict[str, str]:
    """The environment for a target: `environ` with the channel and the directory of the probe.

    The directory contains only a `sitecustomize.py`. It is first on PYTHONPATH, and removes itself
    from `sys.path` before any code of the program runs.
    """
    path = environ.get("PYTHONPATH", "")
    already = path == INJECTED or path.startswith(f"{INJECTED}{os.pathsep}")
    # An empty PYTHONPATH means none, an empty entry in one means the working directory.
    ours_first = path if already else os.pathsep.join([INJECTED, *([path] if path else [])])
    changed = {
        "PYTHONPATH": ours_first,
        ring_format.DIRECTORY_VARIABLE: str(directory),
    }
    return {**environ, **changed}


def owners_of(pid: int) -> frozenset[int]:
    """The uids whose rings are accepted for process `pid`: its user, root, and memdiag's user.

    memdiag owns the channels that it makes, whoever the target runs as. Empty if the process has
    ended.
    """
    try:
        return frozenset({psutil.Process(pid).uids().effective, 0, os.geteuid()})
    except psutil.Error:
        return frozenset()


def find_channel(pid: int) -> Path | None:
    """The channel that the live process `pid` writes to; None if it has none."""
    owners = owners_of(pid)
    named = environment(pid).get(ring_format.DIRECTORY_VARIABLE)
    candidates = [Path(named)] if named else []
    for owner in owners:
        candidates += (path for base in bases(owner) for path in _channels_in(base, owner))
    for directory in candidates:
        if find_ring(directory, pid) is not None:
            return directory
    return candidates[0] if named and _is_private(candidates[0], owners) else None


def find_ring(directory: Path, pid: int) -> Path | None:
    """The ring of the live process `pid` in a channel; None if it has none."""
    started, owners = _started(pid), owners_of(pid)
    if started is None:
        return None
    with contextlib.suppress(OSError), _private(directory, owners) as fd:
        for name in _rings_in(fd):
            if not name.startswith(f"{pid}-"):
                continue
            facts = facts_of(name, fd, owners)
            if facts is not None and facts.process == ProcessId(pid, started):
                return directory / name
    return None


def remove(directory: Path) -> None:
    """Remove a channel. Targets that still write to it do not notice. Other files stay."""
    with (
        contextlib.suppress(OSError),
        safe_open.closing(safe_open.open_parent(directory)) as parent,
    ):
        with safe_open.closing(safe_open.open_directory(directory.name, dir_fd=parent)) as fd:
            for name in (*_rings_in(fd), *_files_beside_rings(fd), ring_format.WATCHER):
                safe_open.remove(name, dir_fd=fd)
        os.rmdir(directory.name, dir_fd=parent)


def remove_stale(base: Path | None = None) -> None:
    """Remove the channels whose maker and writers are all dead. Slow: call it while idle."""
    for place in [base] if base is not None else bases(os.getuid()):
        for directory in islice(_channels_in(place, os.geteuid()), _MOST_STALE):
            maker = _maker(directory.name)
            if maker is not None and not _is_alive(maker) and not _has_writer(directory):
                remove(directory)


class ChannelReader:
    """All rings of a channel, including later ones.

    damaged: rings with content that no probe writes. They are ignored from then on.
    """

    def __init__(self, directory: Path, *, owners: Collection[int] | None = None) -> None:
        """owners: the users whose rings are accepted, by default our own.

        A directory that is not private to one of them counts as empty.
        """
        self._owners = (os.geteuid(),) if owners is None else owners
        self._fd: int | None = None
        with contextlib.suppress(OSError):
            self._fd = safe_open.open_private(directory, owners=self._owners)
        self._rings: dict[str, RingReader] = {}
        self._pressure: dict[str, frozenset[str]] = {}
        self._facts: dict[str, Probed] = {}
        self._dead: set[str] = set()
        self.damaged: set[str] = set()
        self._drains = 0

    @property
    def lost(self) -> int:
        """Events that were overwritten before they were read."""
        return sum(ring.lost for ring in self._rings.values())

    def drain(self) -> list[Event]:
        """The events of all processes since the last call, in order of time."""
        self._find_rings()
        events: list[Event] = []
        late_look = self._drains % _DRAINS_PER_LATE_LOOK == 0
        self._drains += 1
        for name, ring in self._rings.items():
            if name not in self.damaged and (name not in self._dead or late_look):
                events += self._read(name, ring)
        events.sort(key=lambda event: event.at_s)
        return events

    def processes(self) -> tuple[Probed, ...]:
        """Every process that ever opened a ring here, in order of their start."""
        return tuple(sorted(self._facts.values(), key=lambda facts: facts.created_s))

    def labels(self) -> dict[ProcessId, str]:
        """Process -> "rank0", "DataLoader worker 3", ... if the probe knows it."""
        return {facts.process: facts.label for facts in self.processes() if facts.label}

    def holders(self, began_at_s: float) -> tuple[ProcessHolders, ...]:
        """What grows in each process, with the lines that add to it.

        began_at_s: when the recording began. Files of the program are read only if the channel
        belongs to the user of memdiag.
        """
        if self._fd is None:
            return ()
        found = []
        for name in sorted(self._facts, key=lambda ring: self._facts[ring].created_s):
            pid = self._facts[name].process.pid
            one = read_holders(
                name, dir_fd=self._fd, owners=self._owners, pid=pid, began_at_s=began_at_s
            )
            if one is not None:
                found.append(one)
        found = sorted(found, key=lambda one: bool(one[0].holders))[-_MOST_HOLDER_FILES:]
        is_ours = os.fstat(self._fd).st_uid == os.geteuid()
        files = dict.fromkeys(file for _, files in found for file in files) if is_ours else ()
        sources = SourceFiles(tuple(files))
        return tuple(located(one, sources) for one, _ in found)

    def censuses(self, began_at_s: float) -> tuple[ProcessCensuses, ...]:
        """The censuses of each process. began_at_s: when the recording began."""
        found = [one for one in self._beside(read_censuses, began_at_s) if one.censuses]
        return tuple(sorted(found, key=lambda one: one.censuses[-1].at_s)[-_MOST_FILES:])

    def interventions(self, began_at_s: float) -> tuple[ProcessInterventions, ...]:
        """What came back when memory was freed. began_at_s: when the recording began."""
        found = [one for one in self._beside(read_interventions, began_at_s) if one.done]
        return tuple(found[-_MOST_FILES:])

    def _beside(self, read: Callable[..., T | None], began_at_s: float) -> list[T]:
        """What `read` finds in the files beside the rings."""
        if self._fd is None:
            return []
        about = {"dir_fd": self._fd, "owners": self._owners, "began_at_s": began_at_s}
        found = (read(name, pid=one.process.pid, **about) for name, one in self._facts.items())
        return [one for one in found if one is not None]

    def request_census(self, why: str, *, patience_s: float = 0.0) -> None:
        """Ask each live process for a census, which it takes within a second or so.

        why: as in `census_file.request_census`. patience_s: wait for the answers for so long.
        """
        if self._fd is None:
            return
        alive = [name for name, facts in self._facts.items() if _is_alive(facts.process)]
        asked = {name: request_census(name, why, dir_fd=self._fd) for name in alive}
        until_s = time.monotonic() + patience_s
        about: dict[str, Any] = {"dir_fd": self._fd, "owners": self._owners}
        while time.monotonic() < until_s and asked:
            time.sleep(_LOOK_S)
            asked = {
                name: token
                for name, token in asked.items()
                if read_answer(name, **about) != token and _is_alive(self._facts[name].process)
            }

    def set_pressure(self, levels: Collection[str]) -> None:
        """Leave a file for each process for each of the levels that memory is at, once.

        levels: keys of `ring_format.PRESSURE_SUFFIXES`. Files of levels that were left, and that
        the probe has not taken, are removed.
        """
        if self._fd is None:
            return
        for ring in self._facts:
            known = self._pressure.get(ring, frozenset())
            for level in known.symmetric_difference(levels):
                name = ring.removesuffix(ring_format.SUFFIX) + ring_format.PRESSURE_SUFFIXES[level]
                leave_file(name, level if level in levels else "", dir_fd=self._fd)
            self._pressure[ring] = frozenset(levels)

    def close(self) -> None:
        """Release the descriptors."""
        for ring in self._rings.values():
            ring.close()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _find_rings(self) -> None:
        if self._fd is None:
            return
        for name in _rings_in(self._fd):
            if name not in self._rings:
                self._rings[name] = RingReader(name, dir_fd=self._fd, owners=self._owners)

    def _read(self, name: str, ring: RingReader) -> list[Event]:
        """The events of a ring. One with invalid content is dropped; others are unaffected."""
        try:
            return self._events(name, ring)
        except Exception:  # caused by a hostile or damaged file
            self.damaged.add(name)
            ring.close()
            return []

    def _events(self, name: str, ring: RingReader) -> list[Event]:
        known = self._facts.get(name)
        dead = known is not None and _started(known.process.pid) != known.process.started
        facts = ring.facts()  # read again: a process may learn its rank and role later
        if facts is None:
            return []
        self._facts[name] = facts
        events = ring.read()
        if dead:
            self._dead.add(name)
            ring.close()
        return events


def bases(uid: int) -> list[Path]:
    """The directories that contain this user's channels. New ones are made in the first."""
    ours = uid == os.getuid()
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", "") if ours else f"/run/user/{uid}")
    temporary = Path(tempfile.gettempdir()) / f"memdiag-{uid}"
    if runtime.is_absolute() and _is_private(runtime, (uid,)):
        return [runtime / "memdiag", temporary]
    return [temporary]


def _channels_in(base: Path, owner: int) -> Iterator[Path]:
    """The private directories in a private directory of `owner`."""
    with contextlib.suppress(OSError), _private(base, (owner,)) as fd:
        with os.scandir(fd) as entries:
            names = [entry.name for entry in entries if _maker(entry.name) is not None]
        for name in names:
            if _is_private(Path(name), (owner,), fd):
                yield base / name


def located(one: ProcessHolders, sources: SourceFiles) -> ProcessHolders:
    native = tuple(replace(each, line=sources.with_receiver(each.line)) for each in one.native)
    holders = (
        sources.located(holder, sees_all_threads=one.sees_all_threads) for holder in one.holders
    )
    return replace(
        one,
        holders=tuple(
            sources.with_makers(holder, [each.line for each in native])
            if holder.hiding_per_unit
            else holder
            for holder in holders
        ),
        native=native,
        allocated=tuple(replace(line, line=sources.with_code(line.line)) for line in one.allocated),
    )


def _rings_in(fd: int) -> list[str]:
    with os.scandir(fd) as entries:
        rings = (entry.name for entry in entries if entry.name.endswith(ring_format.SUFFIX))
        return list(islice(rings, _MOST_RINGS))


def _files_beside_rings(fd: int) -> list[str]:
    of_probe = (
        ring_format.HOLDERS_SUFFIX,
        ring_format.CENSUS_SUFFIX,
        ring_format.INTERVENTIONS_SUFFIX,
    )
    new = tuple(suffix + ring_format.NEW_SUFFIX for suffix in of_probe)
    ours = (ring_format.REQUEST_SUFFIX, *ring_format.PRESSURE_SUFFIXES.values())
    endings = (*of_probe, *new, *ours)
    with os.scandir(fd) as entries:
        found = (entry.name for entry in entries if entry.name.endswith(endings))
        return list(islice(found, _MOST_RINGS))


def _private(
    directory: Path, owners: Collection[int], dir_fd: int | None = None
) -> contextlib.AbstractContextManager[int]:
    return safe_open.closing(safe_open.open_private(directory, owners=owners, dir_fd=dir_fd))


def _is_private(directory: Path, owners: Collection[int], dir_fd: int | None = None) -> bool:
    """Return True if it is a real directory of one of `owners` that nobody else may enter."""
    try:
        with _private(directory, owners, dir_fd):
            return True
    except OSError:
        return False


def _has_writer(directory: Path) -> bool:
    """Return True if a process with a ring in it is alive, or if that is unknown."""
    owners = (os.geteuid(),)
    try:
        with _private(directory, owners) as fd:
            writers = (facts_of(name, fd, owners) for name in _rings_in(fd))
            return any(facts is not None and _is_alive(facts.process) for facts in writers)
    except OSError:
        return True


def _maker(name: str) -> ProcessId | None:
    """The process that made the channel of this name; None if it is not a channel's name."""
    pid, _, rest = name.partition("-")
    started, _, token = rest.partition("-")
    if not (pid.isdecimal() and started.isdecimal() and token):
        return None
    return ProcessId(int(pid), int(started))


def _is_alive(process: ProcessId) -> bool:
    return _started(process.pid) == process.started


def facts_of(name: str, dir_fd: int, owners: Collection[int]) -> Probed | None:
    """What the ring of this name says of its process; None if it is damaged."""
    reader = RingReader(name, dir_fd=dir_fd, owners=owners)
    try:
        return reader.facts()
    finally:
        reader.close()


def _started(pid: int) -> int | None:
    """Start of the live process `pid` in clock ticks; None if there is none.

    Without /proc it is 0 for every live process, as in the rings.
    """
    try:
        found = parse_stat(Path(f"/proc/{pid}/stat").read_bytes())
    except (OSError, ValueError, IndexError):
        return None if _HAS_PROC or not psutil.pid_exists(pid) else 0
    return None if found.dead else found.started
