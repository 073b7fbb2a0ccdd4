"""What a command writes beside its recording: never over an input, another output, or a file that
is not memdiag's.

Every output is checked before anything starts, by the very open that will write it at the end.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memdiag import safe_open
from memdiag.cli.options.gate import Gate
from memdiag.errors import CannotMeasure, OutputExists, UsageError
from memdiag.recording.native.sidecar import files_of, sidecar_path
from memdiag.values.sanitize import printable

_HEAD_BYTES = 256
_WRITE = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A file as the command line names it. where: the option, or "an input"."""

    path: Path
    where: str


def reports(json_file: Path | None, gate: Gate) -> list[Named]:
    """The reports that were asked for."""
    named = {"--json-file": json_file, "--junitxml": gate.junitxml, "--markdown": gate.markdown}
    return [Named(path=path, where=option) for option, path in named.items() if path is not None]


def of_sources(sources: Sequence[str]) -> list[Named]:
    """What `analyze` and `compare` read: the sources, and the metadata beside recordings."""
    found = []
    for source in sources:
        path = Path("/dev/stdin" if source == "-" else source)
        found.append(Named(path=path, where="an input"))
        if path.name and source != "-":
            found.append(Named(path=sidecar_path(path), where="the metadata of an input"))
    return [named for named in found if _is_file(named.path)]


def of_command(command: Sequence[str]) -> list[Named]:
    """What COMMAND may read: those of its words that are files."""
    words = [Named(path=Path(word), where="a part of COMMAND") for word in command]
    return [named for named in words if _is_file(named.path)]


def of_recording(path: Path) -> list[Named]:
    """The files of the recording that is to be made."""
    return [Named(path=file, where="the recording") for file in files_of(path)]


def check(
    outputs: Sequence[Named],
    *,
    inputs: Sequence[Named] = (),
    recording: Sequence[Named] = (),
    force: bool,
) -> None:
    """Raise UsageError or OutputExists where a report cannot be, or must not be, written.

    recording: the files of the recording that is to be made: outputs that are opened elsewhere.
    force: reports may replace files that memdiag did not write.
    """
    taken = [(identity, named) for named in inputs if (identity := _identity(named.path))]
    summary = os.environ.get("GITHUB_STEP_SUMMARY", "")
    appended = [Named(path=Path(summary), where="GITHUB_STEP_SUMMARY")] if summary else []
    for output in (*recording, *outputs):
        _refuse_place(output.path)
    for output in (*recording, *outputs, *appended):
        identity = _identity(output.path)
        for other, named in taken:
            if identity == other:
                shown = printable(str(output.path))
                raise UsageError(
                    f"{output.where} {shown} is the same file as {named.where}",
                    remedy="name a new file",
                )
        if identity is not None:
            taken.append((identity, output))
    for output in outputs:
        try:
            fd, is_new = _opened(output, force=force)
        except OSError as error:
            raise UsageError(
                f"{output.where} {printable(str(output.path))} cannot be written: {_reason(error)}",
                remedy="choose another place",
            ) from error
        os.close(fd)
        if is_new:
            safe_open.remove(_resolved(output.path)[0])


def write(output: Named, text: str, *, force: bool) -> None:
    """Write a report. Raises CannotMeasure, or OutputExists where the file became another's."""
    try:
        fd, _ = _opened(output, force=force)
        with safe_open.closing(fd):
            if stat.S_ISREG(os.fstat(fd).st_mode):
                os.ftruncate(fd, 0)
            os.set_blocking(fd, True)
            safe_open.write_all(fd, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise CannotMeasure(
            f"{printable(str(output.path))} could not be written: {_reason(error)}",
            remedy=f"choose another place for {output.where}",
        ) from error


def _refuse_place(path: Path) -> None:
    shown = printable(str(path))
    if _is_dir(path):
        raise UsageError(f"{shown} is a directory", remedy=f"name a file: {shown}/run.csv")
    if not _is_dir(path.parent):
        raise UsageError(
            f"there is no directory {printable(str(path.parent))}", remedy="make it first"
        )


def _opened(output: Named, *, force: bool) -> tuple[int, bool]:
    """A descriptor to write the file by, and whether it is new. Never waits.

    Raises OSError, and OutputExists for what memdiag did not write.
    """
    path, is_link = _resolved(output.path)
    try:
        return safe_open.create(path), True
    except FileExistsError:
        fd = os.open(path, _WRITE | (0 if is_link else os.O_NOFOLLOW))
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISREG(mode):
            if not (force or _is_replaceable(os.pread(fd, _HEAD_BYTES, 0))):
                raise OutputExists(
                    f"{output.where} {printable(str(output.path))} exists, and is not a report "
                    "of memdiag's",
                    remedy="choose another name, or use --force",
                )
        elif stat.S_ISFIFO(mode) and os.fstat(fd).st_uid not in (0, os.geteuid()):
            raise PermissionError(errno.EPERM, "it is a FIFO of another user")
        elif not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
            raise safe_open.NotRegular(errno.EINVAL, f"it is {safe_open.kind_of(mode)}")
    except BaseException:
        os.close(fd)
        raise
    if stat.S_ISFIFO(mode):
        os.close(fd)  # while it was open for reading it had a reader
        fd = _opened_pipe(path)
    return fd, False


def _opened_pipe(path: Path) -> int:
    """A pipe that somebody reads: a shell's `>(...)`, a FIFO of the user's."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise BrokenPipeError(errno.EPIPE, "nobody reads from this FIFO") from error
        raise


def _resolved(path: Path) -> tuple[Path, bool]:
    """Where a link to a file leads to, if we or root made it; and whether it is a link still, as
    /dev/stdout, which leads to no name. Raises PermissionError for a link of another user.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return path, False
    if not stat.S_ISLNK(found.st_mode):
        return path, False
    if found.st_uid not in (0, os.geteuid()):
        raise PermissionError(errno.EPERM, "it is a link of another user")
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        is_file = True
    return (Path(os.path.realpath(path)), False) if is_file else (path, True)


def _is_replaceable(head: bytes) -> bool:
    """Return True for the beginning of a report of memdiag's, or of an empty file."""
    from memdiag.report.formats import json_documents, junit, markdown

    beginnings = (json_documents.BEGINNING, junit.BEGINNING, *markdown.BEGINNINGS)
    return not head or head.startswith(tuple(text.encode() for text in beginnings))


def _identity(path: Path) -> tuple[object, ...] | None:
    """What the name leads to, the same for all names of a file, also one that is not there yet.

    None for what may be named twice, as /dev/null, or cannot be known.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        real = Path(os.path.realpath(path))
        try:
            parent = real.parent.stat()
        except OSError:
            return None
        return parent.st_dev, parent.st_ino, real.name
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _reason(error: OSError) -> str:
    return printable(error.strerror or str(error))
