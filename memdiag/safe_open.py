"""Opens, creates and replaces files whose names other users may control.

Three rules hold for every file that memdiag opens by name (docs/security.md lists them):

* An open never waits. A FIFO, a socket, a device or a directory instead of a file is an error.
* Checks are made on the open descriptor, never on the name.
* A file is created by an open that fails if the name exists (O_EXCL, O_NOFOLLOW), relative to an
  open directory, and with an unpredictable name if it is temporary.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PIECE_BYTES = 1 << 20

Name = str | os.PathLike[str]


class NotRegular(OSError):
    """The name belongs to something other than a regular file."""


def open_regular(
    path: Name,
    *,
    dir_fd: int | None = None,
    follow: bool = True,
    owners: Collection[int] | None = None,
) -> int:
    """Open a regular file for reading. Never waits. Raises OSError, including NotRegular.

    follow: follow a symbolic link. owners: uids that it may belong to; None for any.
    """
    fd = os.open(path, READ | (0 if follow else os.O_NOFOLLOW), dir_fd=dir_fd)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise NotRegular(errno.EINVAL, f"it is {kind_of(found.st_mode)}", os.fspath(path))
        if owners is not None and found.st_uid not in owners:
            raise PermissionError(errno.EPERM, "it belongs to another user", os.fspath(path))
        os.set_blocking(fd, True)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_regular(
    path: Name, *, most_bytes: int, dir_fd: int | None = None, follow: bool = True
) -> bytes:
    """Read the first `most_bytes` bytes of a regular file. Raises OSError."""
    fd = open_regular(path, dir_fd=dir_fd, follow=follow)
    with open(fd, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
        data = bytearray()
        while len(data) < most_bytes:
            piece = file.read(min(_PIECE_BYTES, most_bytes - len(data)))
            if not piece:
                break
            data += piece
    return bytes(data)


def open_directory(path: Name, *, dir_fd: int | None = None) -> int:
    """Open a directory that is not a symbolic link. Raises OSError."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, dir_fd=dir_fd)


def open_private(path: Name, *, owners: Collection[int], dir_fd: int | None = None) -> int:
    """Open a directory that only its owner, one of `owners`, may enter.

    Raises OSError; PermissionError if others have access to it.
    """
    fd = open_directory(path, dir_fd=dir_fd)
    found = os.fstat(fd)
    if found.st_uid not in owners or found.st_mode & _OTHERS:
        os.close(fd)
        raise PermissionError(errno.EPERM, "it is not private to its user", os.fspath(path))
    return fd


@contextmanager
def closing(fd: int) -> Iterator[int]:
    """Close the descriptor at the end."""
    try:
        yield fd
    finally:
        os.close(fd)


def create(name: Name, *, mode: int = 0o666, dir_fd: int | None = None) -> int:
    """Create and open a file. Raises OSError; FileExistsError if it exists."""
    return os.open(name, _CREATE, mode, dir_fd=dir_fd)


def open_parent(path: Path) -> int:
    """Open the directory that contains `path`. Raises OSError."""
    return os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def temporary_name(name: str) -> str:
    """A hidden, unpredictable name for a file that will be renamed to `name`."""
    return f".{name[:100]}.{os.urandom(8).hex()}.tmp"


def write_beside(name: str, chunks: Iterable[bytes], *, dir_fd: int) -> tuple[int, str]:
    """Write the chunks to a temporary file beside `name`: returns its descriptor and name.

    Raises OSError, without leaving a file.
    """
    beside = temporary_name(name)
    fd = create(beside, dir_fd=dir_fd)
    try:
        for chunk in chunks:
            write_all(fd, chunk)
        os.fsync(fd)
    except BaseException:
        os.close(fd)
        remove(beside, dir_fd=dir_fd)
        raise
    return fd, beside


def replace(name: str, chunks: Iterable[bytes], *, dir_fd: int) -> int:
    """Replace `name` atomically by a new file with the chunks.

    Returns a descriptor of the new file; the caller closes it. Raises OSError, without a change.
    """
    fd, beside = write_beside(name, chunks, dir_fd=dir_fd)
    try:
        os.replace(beside, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except BaseException:
        os.close(fd)
        remove(beside, dir_fd=dir_fd)
        raise
    return fd


def rename_anew(beside: str, name: str, *, dir_fd: int) -> None:
    """Rename a file in its directory. Raises FileExistsError if the name is taken."""
    try:
        os.link(beside, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: not atomic
        if _is_there(name, dir_fd):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
        os.rename(beside, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        return
    remove(beside, dir_fd=dir_fd)


def _is_there(name: str, dir_fd: int) -> bool:
    try:
        os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def remove(name: Name, *, dir_fd: int | None = None) -> None:
    """Remove a file if it exists and may be removed."""
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=dir_fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all data. Raises OSError, perhaps after a part of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def is_trusted(directory: Path) -> bool:
    """Return True if only this user and root can replace the directory.

    Checks each ancestor as OpenSSH's StrictModes does: it belongs to root or this user, and others
    may write to it only if it has the sticky bit, which protects entries of others.
    """
    try:
        real = directory.resolve(strict=True)
        found = [place.stat() for place in (real, *real.parents)]
    except (OSError, RuntimeError):
        return False
    return all(
        place.st_uid in (0, os.geteuid())
        and (not place.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or place.st_mode & stat.S_ISVTX)
        for place in found
    )


def is_file_or_link(mode: int) -> bool:
    """Return True for the mode of a regular file or a symbolic link."""
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def kind_of(mode: int) -> str:
    """The kind of a file with this mode: "a directory", "a FIFO"."""
    kinds = (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISBLK, "a block device"),
        (stat.S_ISCHR, "a character device"),
    )
    return next((words for is_kind, words in kinds if is_kind(mode)), "a regular file")
