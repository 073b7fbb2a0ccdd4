"""Records torch's allocations on GPUs, on request, and leaves its snapshot of them as a file.

It is written beside the recording when an allocation fails, else at the program's end, once for
each process. `memdiag analyze` and PyTorch's memory viewer read it.
"""

from __future__ import annotations

import os

from .guard import never_raises, ours
from .ring_format import SNAPSHOT_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .session import Session

# Allocations and releases that are kept, the newest: 10 MB in the file. Heuristic.
_MOST_ENTRIES = 100_000
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class DeviceSnapshot:
    """The snapshot of one process. No method raises.

    recording: the one for which torch records a history now, None if a program's or none is.
    """

    recording: DeviceSnapshot | None = None

    def __init__(self, session: Session) -> None:
        self._session = session
        # Where: device, inode and path of a directory, and how the names in it begin.
        self._where = os.environ.get(SNAPSHOT_VARIABLE, "")
        self._memory: Any = None

    @never_raises
    def begin(self, torch: Any) -> None:
        """Record the history, once the program uses a GPU. One of the program is left as it is."""
        if not self._where or self._memory is not None:
            return
        try:
            memory = torch.cuda.memory
            if not torch._C._cuda_isHistoryEnabled():
                memory._record_memory_history(stacks="python", max_entries=_MOST_ENTRIES)
                DeviceSnapshot.recording = self
            self._memory = memory
        except ours(Exception) as error:
            self._failed(error)

    @never_raises
    def write(self) -> None:
        """Write the snapshot, the first time, and stop recording."""
        where, memory = self._where, self._memory
        if not where or memory is None:
            return
        self._where = ""
        try:
            import pickle

            _write(where, pickle.dumps(memory._snapshot(), protocol=4))
        except ours(Exception) as error:
            self._failed(error)
        self.close()

    @never_raises
    def close(self) -> None:
        """Stop recording."""
        self._where = ""
        if DeviceSnapshot.recording is self:
            DeviceSnapshot.recording = None
            self._memory._record_memory_history(enabled=None)

    def after_fork_in_child(self) -> None:
        """A forked child cannot use the GPUs that its parent has used."""
        if self._memory is not None:
            self._where, DeviceSnapshot.recording = "", None

    def _failed(self, error: Exception) -> None:
        self._where = ""
        why = error.strerror if isinstance(error, OSError) else type(error).__name__
        self._session.note(f"torch's snapshot of GPU memory could not be written: {why}")


def _write(where: str, data: bytes) -> None:
    """Write a new file. Raises OSError.

    The directory has to be the one that memdiag has opened, whatever has its name now.
    """
    device, inode, path = where.split(":", 2)
    name = f"{os.path.basename(path)}.snapshot-{os.getpid()}.pickle"  # noqa: PTH119
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    directory = os.open(os.path.dirname(path), flags)  # noqa: PTH120
    try:
        found = os.fstat(directory)
        if (found.st_dev, found.st_ino) != (int(device), int(inode)):
            raise FileNotFoundError(2, "the directory of the recording was replaced")
        fd = os.open(name, _CREATE, 0o600, dir_fd=directory)
        try:
            while data:
                data = data[os.write(fd, data) :]
        except ours(OSError):
            os.unlink(name, dir_fd=directory)
            raise
        finally:
            os.close(fd)
    finally:
        os.close(directory)
