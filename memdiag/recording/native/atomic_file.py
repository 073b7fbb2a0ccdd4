"""The files of a recording while it is written.

They are created before the target starts, by opens that fail if the file exists; there is no other
check. The rows are locked while they are written, so a second recording of the same name is
refused, even with --force. Afterwards the files are accessed only through descriptors of the
directory and the rows. A link that another user puts in their place is replaced, never followed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from memdiag import safe_open
from memdiag.errors import OutputExists, UsageError
from memdiag.recording.native.sidecar import files_of, rows_path, sidecar_path
from memdiag.values.sanitize import printable

SUFFIXES = (".csv", ".parquet")


def snapshot_of(rows: Path) -> re.Pattern[str]:
    """The names of snapshots that the probe leaves beside a recording."""
    return re.compile(re.escape(rows.stem) + r"\.snapshot-\d+\.pickle", re.A)


class RecordingFiles:
    """NAME.csv (converted to NAME.parquet at the end if asked for) and NAME.meta.json.

    path: as asked for. rows: path of the CSV file. fd: of the rows, for reading and appending.

    Raises UsageError or OutputExists if they cannot be created.
    """

    def __init__(self, path: Path, *, force: bool, directory: int | None = None) -> None:
        """force: existing files may be replaced. directory: a descriptor of the directory of
        `path`, which is closed with the files; None to open it by its name.
        """
        self.path, self.rows = path, rows_path(path)
        self._force = force
        self._beside = ""
        self._replaced = -1
        self._final = -1
        if path.suffix not in SUFFIXES:
            raise UsageError(
                f"a recording must end in .csv or .parquet: {printable(str(path))}",
                remedy="--output run.csv",
            )
        try:
            self._directory = safe_open.open_parent(path) if directory is None else directory
            try:
                self._refuse_existing()
                self.fd = self._taken()
            except BaseException:
                os.close(self._directory)
                raise
        except FileExistsError as error:
            raise _exists(Path(error.filename or self.rows)) from None
        except BlockingIOError:
            raise OutputExists(
                f"{printable(str(self.rows))} is being written by another memdiag",
                remedy="choose another name",
            ) from None
        except OSError as error:
            raise UsageError(
                f"{printable(str(self.rows))} cannot be written: {error.strerror}",
                remedy="choose another place with --output",
            ) from error

    def begin(self) -> None:
        """Give the rows their name, replacing an existing file with --force. Raises OSError."""
        if self._beside:
            name, here = self.rows.name, self._directory
            os.replace(self._beside, name, src_dir_fd=here, dst_dir_fd=here)
            self._beside = ""
            os.close(self._replaced)
            self._replaced = -1

    def replace_rows(self, chunks: Iterable[bytes]) -> int:
        """Replace the CSV file. Returns the size of the new one. Raises OSError."""
        name, here = self.rows.name, self._directory
        fd, beside = safe_open.write_beside(name, chunks, dir_fd=here)
        try:
            _own(fd)
            os.replace(beside, name, src_dir_fd=here, dst_dir_fd=here)
        except BaseException:
            self._abandon(fd, beside)
            raise
        old, self.fd = self.fd, fd
        os.close(old)
        return os.fstat(fd).st_size

    def open_rows(self) -> BinaryIO:
        """The CSV file from its beginning. One reader at a time: they share their position."""
        fd = os.dup(self.fd)
        os.lseek(fd, 0, os.SEEK_SET)
        return open(fd, "rb")  # noqa: PTH123 - the caller's

    def write_sidecar(self, text: str) -> None:
        """Replace NAME.meta.json at once. Raises OSError."""
        name = sidecar_path(self.rows).name
        os.close(safe_open.replace(name, [text.encode()], dir_fd=self._directory))

    def place(self) -> str:
        """Where the target may write beside the recording, for `ring_format.SNAPSHOT_VARIABLE`."""
        found = os.fstat(self._directory)
        path = self.rows.absolute().with_suffix("")
        return f"{found.st_dev}:{found.st_ino}:{path}"

    def snapshots(self) -> list[Path]:
        """What the target has written there."""
        here = self._directory
        names = filter(snapshot_of(self.rows).fullmatch, sorted(os.listdir(here)))  # noqa: PTH208
        return [self.rows.with_name(name) for name in names if S_ISREG(_mode(name, here) or 0)]

    def keep_report(self, text: str) -> None:
        """Nothing: a recording that the user named has no report beside it."""

    def forget(self) -> None:
        """Nothing: a recording that the user named stays, even if it is empty."""

    def to_parquet(self, convert: Callable[[Path, Path], None]) -> None:
        """Have `convert(csv, parquet)` write the Parquet file, and remove the CSV file.

        Raises OSError, or FileExistsError if a file of that name exists by now; the CSV file is
        kept then.
        """
        name, here = self.path.name, self._directory
        fd, beside = safe_open.write_beside(name, (), dir_fd=here)
        try:
            convert(_place_of(self.fd, self.rows), _place_of(fd, self.path.with_name(beside)))
            os.fsync(fd)
            if self._force:
                os.replace(beside, name, src_dir_fd=here, dst_dir_fd=here)
            else:
                safe_open.rename_anew(beside, name, dir_fd=here)
        except BaseException:
            self._abandon(fd, beside)
            raise
        self._final = fd
        safe_open.remove(self.rows.name, dir_fd=here)

    @property
    def written(self) -> Path:
        """The recording: the CSV file until there is a Parquet file."""
        return self.rows if self._final < 0 else self.path

    def readable(self) -> Path:
        """A path to read what was written, even if its name leads to another file by now."""
        return self.written if self.is_there() else _place_of(self._latest, self.written)

    def is_there(self) -> bool:
        """Return True if the name still leads to what was written."""
        with contextlib.suppress(OSError):
            return os.path.samestat(self.written.stat(), os.fstat(self._latest))
        return False

    def discard(self) -> None:
        """Remove what was created, and keep what --force would have replaced."""
        safe_open.remove(self._beside or self.rows.name, dir_fd=self._directory)
        self.close()

    def close(self) -> None:
        """Close the descriptors, which releases the lock."""
        for fd in (self.fd, self._directory, self._replaced, self._final):
            if fd >= 0:
                os.close(fd)
        self.fd = self._directory = self._replaced = self._final = -1

    @property
    def _latest(self) -> int:
        return self.fd if self._final < 0 else self._final

    def _abandon(self, fd: int, beside: str) -> None:
        os.close(fd)
        safe_open.remove(beside, dir_fd=self._directory)

    def _refuse_existing(self) -> None:
        for path in files_of(self.path):
            mode = _mode(path.name, self._directory)
            if mode is None:
                continue
            if not safe_open.is_file_or_link(mode):
                raise UsageError(
                    f"{printable(str(path))} is {safe_open.kind_of(mode)}",
                    remedy="name a new file, such as run.csv",
                )
            if not self._force:
                raise _exists(path)

    def _taken(self) -> int:
        """The rows, new and locked: under their name, or beside the file that they replace."""
        name, here = self.rows.name, self._directory
        if not self._force or _mode(name, here) is None:
            fd = safe_open.create(name, dir_fd=here)
        else:
            self._replaced = self._locked(name)
            fd, self._beside = safe_open.write_beside(name, (), dir_fd=here)
        _own(fd)
        return fd

    def _locked(self, name: str) -> int:
        """The existing file, locked. Raises BlockingIOError if another memdiag writes it."""
        here = self._directory
        try:
            fd = safe_open.open_regular(name, dir_fd=here, follow=False)
        except OSError as error:
            if error.errno == errno.ELOOP:  # a link is replaced, not followed
                return os.dup(here)
            raise
        try:
            _lock(fd)
            if not os.path.samestat(os.fstat(fd), os.stat(name, dir_fd=here)):
                raise BlockingIOError  # its writer has just replaced it
        except BaseException:
            os.close(fd)
            raise
        return fd


def _exists(path: Path) -> OutputExists:
    return OutputExists(
        f"{printable(str(path))} already exists", remedy="choose another name, or use --force"
    )


def _mode(name: str, dir_fd: int) -> int | None:
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _lock(fd: int) -> None:
    """Raises BlockingIOError if the file is locked. Some file systems have no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


def _own(fd: int) -> None:
    """Lock a file and open it for appending."""
    _lock(fd)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND)


def _place_of(fd: int, path: Path) -> Path:
    """A path that opens the file of this descriptor; macOS has none."""
    return Path(f"/proc/self/fd/{fd}") if sys.platform.startswith("linux") else path
