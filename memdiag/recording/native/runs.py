"""The place for runs: `.memdiag/runs/ID/` with a recording, its sidecar and its report.

Nothing here trusts a name. A run is a directory (not a link) in an open directory; a file in it is
memdiag's if it is a regular file of the same owner, has one of the names that memdiag gives, and is
empty or begins as memdiag writes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import re
import stat
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memdiag import safe_open
from memdiag.errors import UsageError
from memdiag.recording.native.atomic_file import RecordingFiles, snapshot_of
from memdiag.recording.native.sidecar import SIDECAR_BEGINNING, sidecar_path
from memdiag.values.kept_run import KeptRun
from memdiag.values.metrics import KEY_COLUMNS
from memdiag.values.sanitize import printable

RUNS, RECORDING, REPORT = "runs", "recording.csv", "report.json"
_SIDECAR = sidecar_path(Path(RECORDING)).name
# How each file of a run begins; it may also be empty.
_BEGINNINGS = {
    RECORDING: ",".join(KEY_COLUMNS).encode(),
    _SIDECAR: SIDECAR_BEGINNING.encode(),
    REPORT: b'{\n  "schema_version"',
}
_TEMPORARY = re.compile(
    r"\.(?:" + "|".join(map(re.escape, _BEGINNINGS)) + r")\.[0-9a-f]{16}\.tmp", re.A
)
# What the probe leaves beside the recording (`--snapshot`), a pickle of protocol 4.
_SNAPSHOT = snapshot_of(Path(RECORDING))
_SNAPSHOT_BEGINNING = b"\x80\x04"
_ID = re.compile(r"(\d{8}-\d{6})-(.*)-(\d+)(?:\.\d+)?", re.A | re.S)
_LAST = re.compile(r"last(?:~(\d+))?", re.A)
_IN_TIME = "%Y%m%d-%H%M%S"
_LONGEST_NAME = 40
_MOST_REPORT_BYTES = 16 << 20
_MOST_SIDECAR_BYTES = 4 << 20
# The sidecar follows the first rows within this time. Heuristic.
_STARTED_WITHIN_S = 60.0
_IGNORE_ALL = b"# Written by memdiag: runs are not for version control.\n*\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where runs are kept.

    path: the directory. is_named: the user named it: links in it are followed, its parents are
    made, and it is an error if it cannot be used.
    """

    path: Path = Path(".memdiag")
    is_named: bool = False

    @property
    def runs(self) -> Path:
        """The directory with a directory for each run."""
        return self.path / RUNS


class RunFiles(RecordingFiles):
    """The files of a new run. Raises UsageError if they cannot be created."""

    def __init__(self, place: Place, command: Sequence[str], pid: int, began_at: datetime) -> None:
        """command, pid: what is recorded. began_at: local time."""
        try:
            self._runs = _opened(place, is_new=True)
        except OSError as error:
            raise UsageError(
                f"{printable(str(place.path))} cannot keep runs: {error.strerror}",
                remedy="name another directory: MEMDIAG_DIR, or dir in [tool.memdiag]",
            ) from error
        try:
            self._id, directory = self._made(f"{began_at:{_IN_TIME}}-{name_of(command)}-{pid}")
        except OSError as error:
            os.close(self._runs)
            raise UsageError(
                f"{printable(str(place.runs))} cannot be written: {error.strerror}",
                remedy="name another directory: MEMDIAG_DIR, or dir in [tool.memdiag]",
            ) from error
        try:
            super().__init__(place.runs / self._id / RECORDING, force=False, directory=directory)
        except BaseException:
            os.close(self._runs)
            raise

    def _made(self, name: str) -> tuple[str, int]:
        """A new directory: its name and a descriptor. Raises OSError."""
        for number in itertools.count():
            unused = f"{name}.{number}" if number else name
            with contextlib.suppress(FileExistsError):
                os.mkdir(unused, dir_fd=self._runs)
                fd = safe_open.open_directory(unused, dir_fd=self._runs)
                if os.fstat(fd).st_uid == os.geteuid():
                    return unused, fd
                os.close(fd)
                raise PermissionError(errno.EPERM, "it was replaced by another user")
        raise AssertionError

    def keep_report(self, text: str) -> None:
        """Write the report beside the recording. Raises OSError."""
        _keep(text, self._directory)

    def discard(self) -> None:
        """Remove the run."""
        runs = os.dup(self._runs)
        super().discard()
        with safe_open.closing(runs), contextlib.suppress(OSError):
            os.rmdir(self._id, dir_fd=runs)

    def forget(self) -> None:
        """Remove the run with all that memdiag has written into it."""
        with contextlib.suppress(OSError):
            _remove(self._id, self._runs, self._directory)

    def close(self) -> None:
        super().close()
        if self._runs >= 0:
            os.close(self._runs)
            self._runs = -1


def keep_report(place: Place, run: KeptRun, text: str) -> None:
    """Write the report of a run of this user into its directory, if that can be done."""
    with (
        contextlib.suppress(OSError),
        safe_open.closing(_opened(place)) as runs,
        safe_open.closing(safe_open.open_directory(run.id, dir_fd=runs)) as directory,
    ):
        if os.fstat(directory).st_uid == os.geteuid():
            _keep(text, directory)


def _keep(text: str, directory: int) -> None:
    os.close(safe_open.replace(REPORT, [text.encode()], dir_fd=directory))


def name_of(command: Sequence[str]) -> str:
    """The program in a command, as a part of a file name: `train` for `python train.py --lr 1`."""
    words = [*command]
    scripts = [Path(word).stem for word in words if word.endswith((".py", ".sh", ".ipynb"))]
    if "-m" in words[:-1]:
        scripts.append(words[words.index("-m") + 1])
    name = next(iter(scripts), Path(words[0]).name if words else "")
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:_LONGEST_NAME].strip("._-")
    return safe or "run"


def runs_in(place: Place) -> list[KeptRun]:
    """The runs that are kept there, the newest first; [] without a place. Raises UsageError."""
    with _listed(place) as (runs, names):
        return [run for name in names if (run := _run(place, name, runs)) is not None]


def is_run_name(word: str) -> bool:
    """Return True for `last`, `last~1` and the form of an ID."""
    return _LAST.fullmatch(word) is not None or _began_at(word) is not None


def resolve(place: Place, word: str) -> Path:
    """The recording of the run that a word names. Raises UsageError if there is no such run."""
    last = _LAST.fullmatch(word)
    back = int(last[1] or 0) if last is not None else 0
    with _listed(place) as (runs, names):
        if last is None and word in names:
            return _recording(place, word, runs)
        if last is not None and back < len(names):
            return _recording(place, names[back], runs)
    counted = {0: "is no run", 1: "is only one run"}.get(len(names), f"are only {len(names)} runs")
    raise UsageError(
        f"there {counted if last is not None else f'is no run {printable(word)}'} "
        f"in {printable(str(place.runs))}",
        remedy="memdiag list shows the runs; memdiag run -- COMMAND records one",
    )


def _recording(place: Place, name: str, runs: int) -> Path:
    """The recording of a run. Raises UsageError if it is not a regular file: a FIFO that a person
    names is waited for, one that is found here is not.
    """
    path = place.runs / name / RECORDING
    try:
        mode = os.stat(f"{name}/{RECORDING}", dir_fd=runs, follow_symlinks=False).st_mode
        found = "" if stat.S_ISREG(mode) else f"is {safe_open.kind_of(mode)}"
    except OSError as error:
        found = f"cannot be read: {error.strerror}"
    if found:
        raise UsageError(f"{printable(str(path))} {found}", remedy="memdiag list shows the runs")
    return path


def remove(place: Place, run: KeptRun) -> None:
    """Remove a run. Raises OSError, and leaves a directory with anything that is not memdiag's."""
    runs = _opened(place)
    with safe_open.closing(runs):
        directory = safe_open.open_directory(run.id, dir_fd=runs)
        with safe_open.closing(directory):
            if _others(directory) or _is_recording(directory):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), run.id)
            _remove(run.id, runs, directory)


def _remove(name: str, runs: int, directory: int) -> None:
    """Remove what memdiag wrote for a run, and its directory if nothing else is in it. Raises
    OSError."""
    for file in _names(directory):
        if _is_file(file, directory):
            os.unlink(file, dir_fd=directory)
    os.rmdir(name, dir_fd=runs)


@contextmanager
def _listed(place: Place) -> Iterator[tuple[int, list[str]]]:
    """A descriptor of the directory of runs, and the names of runs in it, the newest first."""
    try:
        fd = _opened(place)
    except FileNotFoundError:
        yield -1, []
        return
    except OSError as error:
        raise UsageError(
            f"the runs in {printable(str(place.path))} cannot be read: {error.strerror}",
            remedy="name another directory: MEMDIAG_DIR, or dir in [tool.memdiag]",
        ) from error
    with safe_open.closing(fd):
        yield fd, sorted((name for name in _names(fd) if _is_run(name, fd)), reverse=True)


def _opened(place: Place, *, is_new: bool = False) -> int:
    """A descriptor of the directory of runs. Raises OSError.

    It belongs to this user, to root, or to the owner of the directory that it is in (who may be
    another user: root in a container, a project that several users share), and so does a link to
    it. is_new: make it.
    """
    made = is_new and _made(place)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    fd = os.open(place.path, flags | (0 if place.is_named else os.O_NOFOLLOW))
    with safe_open.closing(fd):
        named = place.path.lstat().st_uid, place.path.parent.stat().st_uid
        for owner, above in ((os.fstat(fd).st_uid, os.stat("..", dir_fd=fd).st_uid), named):
            if owner not in {0, os.geteuid(), above}:
                raise PermissionError(errno.EPERM, "it belongs to another user", str(place.path))
        if made:
            os.close(safe_open.replace(".gitignore", [_IGNORE_ALL], dir_fd=fd))
        if is_new:
            with contextlib.suppress(FileExistsError):
                os.mkdir(RUNS, dir_fd=fd)
        return safe_open.open_directory(RUNS, dir_fd=fd)


def _made(place: Place) -> bool:
    """Make the place; return True if it did not exist. Raises OSError."""
    if place.is_named:
        place.path.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.path.mkdir()
    except FileExistsError:
        return False
    return True


def _began_at(name: str) -> datetime | None:
    """When the run of this name began; None if the name is not that of a run."""
    match = _ID.fullmatch(name)
    with contextlib.suppress(ValueError, OverflowError):
        return datetime.strptime(match[1], _IN_TIME).astimezone() if match else None
    return None


def _is_run(name: str, runs: int) -> bool:
    """Return True for a directory that this user, root or the owner of the place has made."""
    if _began_at(name) is None:
        return False
    with contextlib.suppress(OSError):
        found = os.stat(name, dir_fd=runs, follow_symlinks=False)
        owners = (0, os.geteuid(), os.fstat(runs).st_uid)
        return stat.S_ISDIR(found.st_mode) and found.st_uid in owners
    return False


def _run(place: Place, name: str, runs: int) -> KeptRun | None:
    """The run of this name; None if it has just been removed."""
    began_at = _began_at(name)
    try:
        directory = safe_open.open_directory(name, dir_fd=runs)
    except OSError:
        return None
    with safe_open.closing(directory):
        about = _document(_SIDECAR, _MOST_SIDECAR_BYTES, directory).get("about", {})
        command = about.get("command", ()) if isinstance(about, dict) else ()
        assert began_at is not None
        return KeptRun(
            id=name,
            recording=place.runs / name / RECORDING,
            began_at=began_at,
            command=tuple(map(str, command)) if isinstance(command, list) else (),
            size_bytes=sum(_sizes(directory)),
            is_recording=_is_recording(directory),
            report=_document(REPORT, _MOST_REPORT_BYTES, directory),
            others=tuple(_others(directory)),
        )


def _document(name: str, most_bytes: int, directory: int) -> dict[str, Any]:
    """A JSON object of a run; {} if it is missing or damaged."""
    try:
        raw = safe_open.read_regular(name, most_bytes=most_bytes, dir_fd=directory, follow=False)
        found = json.loads(raw)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _names(directory: int) -> list[str]:
    return sorted(os.listdir(directory))


def _sizes(directory: int) -> Iterator[int]:
    for name in _names(directory):
        with contextlib.suppress(OSError):
            yield os.stat(name, dir_fd=directory, follow_symlinks=False).st_size


def _others(directory: int) -> Collection[str]:
    """The names in a run's directory that are not of files that memdiag wrote."""
    return [name for name in _names(directory) if not _is_file(name, directory)]


def _is_file(name: str, directory: int) -> bool:
    """Return True for a file that memdiag wrote."""
    is_snapshot = _SNAPSHOT.fullmatch(name) is not None
    if name not in _BEGINNINGS and not is_snapshot and not _TEMPORARY.fullmatch(name):
        return False
    known = _SNAPSHOT_BEGINNING if is_snapshot else _BEGINNINGS.get(name, b"")
    try:
        owner = os.fstat(directory).st_uid
        fd = safe_open.open_regular(name, dir_fd=directory, follow=False, owners=(owner,))
    except OSError:
        return False
    with safe_open.closing(fd):
        head = os.read(fd, len(known))
    return not head or head.startswith(known)


def _is_recording(directory: int) -> bool:
    """Return True if a memdiag writes the recording.

    Its rows are locked before there is a sidecar. Earlier, this must not lock them, even for a
    moment: the memdiag that has just created them would give up.
    """
    try:
        os.stat(_SIDECAR, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return time.time() - os.fstat(directory).st_mtime < _STARTED_WITHIN_S
    try:
        fd = safe_open.open_regular(RECORDING, dir_fd=directory, follow=False)
    except OSError:
        return False
    with safe_open.closing(fd):
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return False
    return False
