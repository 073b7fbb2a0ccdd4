"""The way from the target's probes and tags to memdiag: a private directory full of rings.

The directory is made by whoever starts the target, named to it by an environment variable, and
inherited by its children. Readers are passive: the target neither waits for them nor notices
when they are gone.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from memdiag.capture.process import ProcessId
from memdiag.capture.procfs import parse_stat
from memdiag.capture.ring import Event, Kind, Probed, RingReader
from memdiag.errors import CannotMeasure
from memdiag.probe import layout
from memdiag.probe.arming import INJECTED

__all__ = ["ChannelReader", "Event", "Kind", "Probed"]
__all__ += ["create", "find_channel", "find_ring", "prepare", "remove"]

_HAS_PROC = Path("/proc/self/stat").exists()
# The rings of dead processes are looked at once per so many drains: their last words were read
# already, but a process of another pid namespace looks dead to us and is not.
_DRAINS_PER_LATE_LOOK = 32


def create(base: Path | None = None) -> Path:
    """Make a new private (0700) directory for a channel, and remove those of dead runs.

    base: where to make it, by default `memdiag-UID` in the directory for temporary files.
    Raises CannotMeasure where nothing can be written.
    """
    base = base or _default_base()
    name = f"{os.getpid()}-{_started(os.getpid()) or 0}-{secrets.token_hex(4)}"
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(base):
            base = Path(tempfile.mkdtemp(prefix="memdiag-"))
        _remove_stale(base)
        (base / name).mkdir(mode=0o700)
    except OSError as error:
        raise CannotMeasure(
            f"no private directory could be made under {base}: {error.strerror}",
            remedy="point TMPDIR at a directory that can be written to",
        ) from error
    return base / name


def prepare(environ: Mapping[str, str], directory: Path) -> dict[str, str]:
    """The environment for a target: `environ` with the channel and the way in for the probe.

    The injected directory holds a `sitecustomize.py` alone. It goes first on PYTHONPATH, and
    takes itself off `sys.path` again before any code of the program runs.
    """
    path = environ.get("PYTHONPATH", "")
    already = path == INJECTED or path.startswith(f"{INJECTED}{os.pathsep}")
    # An empty PYTHONPATH means none, an empty entry in one means the working directory.
    ours_first = path if already else os.pathsep.join([INJECTED, *([path] if path else [])])
    changed = {
        "PYTHONPATH": ours_first,
        layout.DIRECTORY_VARIABLE: str(directory),
    }
    return {**environ, **changed}


def find_channel(pid: int) -> Path | None:
    """The channel that the live process `pid` writes to; None where it has none."""
    named = _variable_of(pid, layout.DIRECTORY_VARIABLE)
    candidates = [Path(named)] if named else []
    base = _default_base()
    if base.is_dir():
        candidates += [path for path in base.iterdir() if path.is_dir()]
    for directory in candidates:
        if find_ring(directory, pid) is not None:
            return directory
    return candidates[0] if named and candidates[0].is_dir() else None


def find_ring(directory: Path, pid: int) -> Path | None:
    """The ring of the live process `pid` in a channel; None where it has none."""
    started = _started(pid)
    for ring in directory.glob(f"{pid}-*{layout.SUFFIX}"):
        facts = _facts(ring)
        if facts is not None and facts.process.started == started:
            return ring
    return None


def remove(directory: Path) -> None:
    """Remove a channel's directory. Targets that still write to it do not notice."""
    shutil.rmtree(directory, ignore_errors=True)


class ChannelReader:
    """All rings of a channel, those that appear later included."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._rings: dict[str, RingReader] = {}
        self._facts: dict[str, Probed] = {}
        self._dead: set[str] = set()
        self._drains = 0

    @property
    def lost(self) -> int:
        """Events that were overwritten before they were read."""
        return sum(ring.lost for ring in self._rings.values())

    def drain(self) -> list[Event]:
        """The events since the last call, of all processes, in the order of time."""
        self._find_rings()
        events: list[Event] = []
        late_look = self._drains % _DRAINS_PER_LATE_LOOK == 0
        self._drains += 1
        for name, ring in self._rings.items():
            if name not in self._dead or late_look:
                events += self._read(name, ring)
        events.sort(key=lambda event: event.at_s)
        return events

    def processes(self) -> tuple[Probed, ...]:
        """Every process that ever opened a ring here, in the order of their beginning."""
        return tuple(sorted(self._facts.values(), key=lambda facts: facts.created_s))

    def labels(self) -> dict[ProcessId, str]:
        """Process -> "rank0", "DataLoader worker 3", ... where the probe can tell."""
        return {facts.process: facts.label for facts in self.processes() if facts.label}

    def close(self) -> None:
        """Release the descriptors."""
        for ring in self._rings.values():
            ring.close()

    def _find_rings(self) -> None:
        try:
            names = [entry.name for entry in os.scandir(self._directory)]
        except OSError:
            return
        for name in names:
            if name.endswith(layout.SUFFIX) and name not in self._rings:
                self._rings[name] = RingReader(self._directory / name)

    def _read(self, name: str, ring: RingReader) -> list[Event]:
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


def _default_base() -> Path:
    return Path(tempfile.gettempdir()) / f"memdiag-{os.getuid()}"


def _is_private(directory: Path) -> bool:
    """Whether it is a real directory of ours that nobody else may enter."""
    found = directory.lstat()
    ours = found.st_uid == os.getuid() and stat.S_ISDIR(found.st_mode)
    return ours and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def _remove_stale(base: Path) -> None:
    """Remove the channels whose maker and whose every writer is dead."""
    for directory in base.iterdir():
        maker = _maker(directory.name)
        if maker is None or not _is_private(directory) or _alive(maker):
            continue
        writers = (_facts(ring) for ring in directory.glob(f"*{layout.SUFFIX}"))
        if not any(facts is not None and _alive(facts.process) for facts in writers):
            remove(directory)


def _maker(name: str) -> ProcessId | None:
    """Who made the channel of this name; None where it is no name that we give."""
    pid, _, rest = name.partition("-")
    started, _, token = rest.partition("-")
    if not (pid.isdecimal() and started.isdecimal() and token):
        return None
    return ProcessId(int(pid), int(started))


def _alive(process: ProcessId) -> bool:
    return _started(process.pid) == process.started


def _facts(ring: Path) -> Probed | None:
    reader = RingReader(ring)
    try:
        return reader.facts()
    finally:
        reader.close()


def _started(pid: int) -> int | None:
    """Start of the live process `pid` in clock ticks; None where there is none.

    Where there is no /proc it is 0 for every live process, as in the rings themselves.
    """
    try:
        found = parse_stat(Path(f"/proc/{pid}/stat").read_bytes())
    except (OSError, ValueError, IndexError):
        return None if _HAS_PROC or not psutil.pid_exists(pid) else 0
    return None if found.dead else found.started


def _variable_of(pid: int, name: str) -> str | None:
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    return next(_values(environ.split(b"\0"), name), None)


def _values(entries: list[bytes], name: str) -> Iterator[str]:
    for entry in entries:
        if entry.startswith(name.encode() + b"="):
            yield os.fsdecode(entry[len(name) + 1 :])
