"""The files that a command writes beside its recording. It never overwrites an input, another
output, or a file that memdiag did not write.

Every output is checked before anything starts, by opening it as at the end.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, fields
from os.path import isdir, isfile  # unlike Path's, they never raise
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from memdiag import safe_open
from memdiag.cli.options.declare import flag, option
from memdiag.errors import CannotMeasure, OutputExists, UsageError
from memdiag.recording.native.sidecar import files_of, sidecar_path
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.report.formats.files import FileFormat

_HEAD_BYTES = 256
_WRITE = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The report in files, and as JSON. force: replace files that memdiag did not write."""

    IS_SETTABLE: ClassVar[bool] = True

    json: bool = flag("--json", help="Print the report as JSON, and nothing else.", panel="Output")
    json_file: Path | None = option(
        "--json-file",
        "FILE",
        "Write the report to FILE as JSON.",
        parse=Path,
        panel="Output",
        typical=True,
    )
    junitxml: Path | None = option(
        "--junitxml",
        "FILE",
        "Write a JUnit report: a test case for each series and budget.",
        parse=Path,
        panel="Output",
    )
    markdown: Path | None = option(
        "--markdown", "FILE", "Write the report as Markdown.", parse=Path, panel="Output"
    )
    html: Path | None = option(
        "--html",
        "FILE",
        "Write the report as HTML with interactive charts.",
        parse=Path,
        panel="Output",
        typical=True,
    )
    png: Path | None = option(
        "--png",
        "FILE",
        "Write a picture of the memory as PNG (memdiag[plot]).",
        parse=Path,
        panel="Output",
    )
    svg: Path | None = option(
        "--svg", "FILE", "Write the same picture as SVG.", parse=Path, panel="Output"
    )
    picture_style: str = option(
        "--picture-style",
        "WORDS",
        "light or dark, for a page, column or slide: dark,slide.  [default: light,page]",
        default="",
        panel="Output",
    )
    force: bool = flag(
        "--force", help="Overwrite FILE even if memdiag did not write it.", panel="Output"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A file on the command line. where: the option, or "an input"."""

    path: Path
    where: str


def reports(options: ReportOptions) -> list[Named]:
    """The report files that were requested."""
    given = ((f.metadata.get("name", ""), getattr(options, f.name)) for f in fields(options))
    return [Named(path=path, where=name) for name, path in given if isinstance(path, Path)]


def shows_readings(options: ReportOptions) -> bool:
    """Return True if a requested report shows readings, not only findings."""
    return any(_format(report).shows_readings for report in reports(options))


def require(options: ReportOptions) -> None:
    """Raise UsageError if a requested report cannot be written on this machine."""
    for report in reports(options):
        _format(report).require(options.picture_style)


def _format(report: Named) -> FileFormat:
    from memdiag.report.formats.files import FORMATS  # only if there is one

    return FORMATS[report.where]


def of_sources(sources: Sequence[str]) -> list[Named]:
    """The inputs of `analyze` and `compare`: sources, and the metadata beside recordings."""
    found = []
    for source in sources:
        path = Path("/dev/stdin" if source == "-" else source)
        found.append(Named(path=path, where="an input"))
        if path.name and source != "-":
            found.append(Named(path=sidecar_path(path), where="the metadata of an input"))
    return [named for named in found if isfile(named.path)]


def of_command(command: Sequence[str]) -> list[Named]:
    """The possible inputs of COMMAND: those of its words that are files."""
    words = [Named(path=Path(word), where="a part of COMMAND") for word in command]
    return [named for named in words if isfile(named.path)]


def of_recording(path: Path) -> list[Named]:
    """The files of the recording that will be written."""
    return [Named(path=file, where="the recording") for file in files_of(path)]


def check(
    outputs: Sequence[Named],
    *,
    inputs: Sequence[Named] = (),
    recording: Sequence[Named] = (),
    force: bool,
) -> None:
    """Raise UsageError or OutputExists if a report cannot or must not be written.

    recording: the files of the recording, which are opened elsewhere.
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


def write(output: Named, content: str | bytes, *, force: bool) -> None:
    """Write a report. Raises CannotMeasure, or OutputExists if the file was replaced meanwhile."""
    try:
        fd, _ = _opened(output, force=force)
        with safe_open.closing(fd):
            if stat.S_ISREG(os.fstat(fd).st_mode):
                os.ftruncate(fd, 0)
            os.set_blocking(fd, True)
            if isinstance(content, str):
                content = content.encode(errors="backslashreplace")
            safe_open.write_all(fd, content)
    except OSError as error:
        raise CannotMeasure(
            f"{printable(str(output.path))} could not be written: {_reason(error)}",
            remedy=f"choose another place for {output.where}",
        ) from error


def _refuse_place(path: Path) -> None:
    shown = printable(str(path))
    if isdir(path):
        raise UsageError(f"{shown} is a directory", remedy=f"name a file: {shown}/run.csv")
    if not isdir(path.parent):
        parent = printable(str(path.parent))
        raise UsageError(f"directory does not exist: {parent}", remedy=f"mkdir -p {parent}")


def _opened(output: Named, *, force: bool) -> tuple[int, bool]:
    """A descriptor for writing the file, and whether the file is new. Never waits.

    Raises OSError, and OutputExists for a file that memdiag did not write.
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
                    f"{output.where} {printable(str(output.path))} exists and is not a memdiag "
                    "report",
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
        os.close(fd)  # opened for reading, it had a reader: this process
        fd = _opened_pipe(path)
    return fd, False


def _opened_pipe(path: Path) -> int:
    """A pipe with a reader: `>(...)` of a shell, a FIFO of the user."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise BrokenPipeError(errno.EPIPE, "nobody reads from this FIFO") from error
        raise


def _resolved(path: Path) -> tuple[Path, bool]:
    """The target of a link to a file, if this user or root created it; and whether it is still a
    link, as /dev/stdout, which has no name. Raises PermissionError for a link of another user.
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
    """Return True for the beginning of a memdiag report, or of an empty file."""
    from memdiag.report.formats.files import FORMATS

    return not head or any(known.opening.match(head) for known in FORMATS.values())


def _identity(path: Path) -> tuple[object, ...] | None:
    """The identity of the file, the same for all its names, even if it does not exist yet.

    None for what may be named twice, as /dev/null, or is not known.
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


def _reason(error: OSError) -> str:
    return printable(error.strerror or str(error))
