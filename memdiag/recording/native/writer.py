"""The native recording while it grows: one CSV file that is complete at any moment.

Rows are appended and never changed, so that whatever ends memdiag leaves everything up to the
last second. When the file has grown long, the rows that `thinning` does not keep are left out by
writing the file anew beside its place and moving it there. Nothing here hurts the run: a full
disk is remembered as `trouble`, what is written stays, and writing is tried again later.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from memdiag import safe_open
from memdiag.recording.native.atomic_file import RecordingFiles
from memdiag.recording.native.csv_rows import Rows
from memdiag.recording.native.downsampling import Thinner
from memdiag.recording.native.sidecar import Sidecar, text_of
from memdiag.values.measurements import Ending, Limit, Mark, Missing, Sample
from memdiag.values.sanitize import printable

# Unthinned rows at the file's end: when they exceed this, they are thinned.
_COMPACT_BYTES = 12 << 20
# What the thinned rows of a day may take, so that both stay under 50 MB together.
_DAY_BYTES = 30_000_000
_DAY_S, _MINUTE_S = 86_400.0, 60.0
_FLUSH_ROWS = 2000
# A disk that was full is tried again after so many flushes.
_RETRY_FLUSHES = 10
_CHUNK = 1 << 20


def default_path(pid: int, now: datetime) -> Path:
    """A new file in the working directory, named by local time and pid."""
    return Path(f"memdiag-{now.astimezone():%Y%m%d-%H%M%S}-{pid}.csv")


class Writer:
    """A recording that is being written.

    No method raises an OSError: `trouble` says what went wrong, "" if nothing did.
    """

    def __init__(
        self,
        files: RecordingFiles,
        *,
        about: dict[str, Any],
        interval_s: float,
        full: bool = False,
    ) -> None:
        """files: new and empty. about: plain JSON values for the sidecar: command, host, versions.
        full: keep every row.
        """
        self._files = files
        self._sidecar = Sidecar(about={**about, "interval_s": interval_s})
        self._rows = Rows()
        self._thinner = None if full else Thinner(interval_s=interval_s)
        self._pending: list[Sample] = []
        self._skip_flushes = 0
        self.trouble = ""
        self._size = self._thinned_size = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._syncer = threading.Thread(target=self._sync_for_ever, daemon=True)
        self._syncer.start()
        self._try(self._files.begin)
        self._append(self._rows.header())
        self._thinned_size = self._size
        self._try(lambda: self._files.write_sidecar(text_of(self._sidecar)))

    @property
    def path(self) -> Path:
        """Where the recording is: the CSV file until `close` has made a Parquet file of it."""
        return self._files.written

    def add(self, samples: Sequence[Sample]) -> None:
        """Takes samples, in the order of their time within each process."""
        self._pending.extend(samples)
        if len(self._pending) >= _FLUSH_ROWS:
            self.flush()

    def mark(self, mark: Mark) -> None:
        """Notes in the sidecar, at once, that a threshold was passed: what comes next may be the
        end of us all."""
        self._sidecar = replace(self._sidecar, marks=(*self._sidecar.marks, mark))
        with contextlib.suppress(OSError):  # it is written again at the end
            self._files.write_sidecar(text_of(self._sidecar))

    def flush(self) -> None:
        """Hands everything to the operating system, which is asked to put it on the disk."""
        if self._skip_flushes > 0:
            self._skip_flushes -= 1
            self._pending.clear()
            return
        samples, self._pending = self._pending, []
        if not samples:
            return
        learned = self._rows.learn(samples)
        if learned and not self._widen(learned):
            self._rows.forget(learned)
        header = b"" if self._size else self._rows.header()
        if self._append(header + "".join(map(self._rows.line, samples)).encode()):
            self._thin(samples)
        self._wake.set()

    def close(
        self,
        *,
        ending: Ending | None = None,
        missing: Sequence[Missing] = (),
        cost: dict[str, Any] | None = None,
        limits: Sequence[Limit] = (),
        notes: Sequence[str] = (),
        processes: Sequence[dict[str, Any]] = (),
    ) -> None:
        """Finishes the recording. The writer takes no more samples.

        processes: who took part, as plain JSON values.
        """
        self._skip_flushes = 0
        self.flush()
        self._closing = True
        self._wake.set()
        self._syncer.join()
        self._try(lambda: os.fsync(self._files.fd))
        sidecar = replace(
            self._sidecar,
            about={**self._sidecar.about, "processes": list(processes)},
            complete=True,
            ending=ending,
            missing=tuple(missing),
            limits=tuple(limits),
            notes=(*notes, *self._own_notes()),
            cost=cost or {},
        )
        self._try(lambda: self._files.write_sidecar(text_of(sidecar)))
        if self._files.path != self._files.rows:
            self._try(self._to_parquet)

    def _own_notes(self) -> Iterator[str]:
        if self._rows.refused:
            yield f"{len(self._rows.refused)} further counters were left out: too many columns"
        if self.trouble:
            yield f"the recording has gaps: {self.trouble}"

    def _append(self, data: bytes) -> bool:
        """All of the data, or nothing: what was written of it is taken back."""
        try:
            safe_open.write_all(self._files.fd, data)
        except OSError as error:
            self._fail(error)
            with contextlib.suppress(OSError):
                os.ftruncate(self._files.fd, self._size)
            return False
        self._size += len(data)
        return True

    def _thin(self, samples: Sequence[Sample]) -> None:
        if self._thinner is None:
            return
        for sample in samples:
            self._thinner.see(sample)
        if self._size - self._thinned_size > _COMPACT_BYTES:
            self._compact(self._thinner, samples[-1].at_s)

    def _compact(self, thinner: Thinner, now_s: float) -> None:
        """Leaves out what the thinner does not keep. Where that fails the rows simply stay."""
        keep = thinner.cut(now_s)
        self._rewrite(lambda: self._thinned_chunks(keep))
        self._thinned_size = self._size
        share = math.log1p(now_s / _MINUTE_S) / math.log1p(_DAY_S / _MINUTE_S)
        thinner.coarsen(self._size / (_DAY_BYTES * max(share, 0.05)))

    def _thinned_chunks(self, keep: bytes) -> Iterator[bytes]:
        with self._files.open_rows() as file:
            left = self._thinned_size
            while left > 0 and (chunk := file.read(min(_CHUNK, left))):
                left -= len(chunk)
                yield chunk
            for wanted, line in zip(keep, file, strict=False):
                if wanted:
                    yield line

    def _widen(self, columns: int) -> bool:
        """A new header, and blank cells at the end of each row. Cells hold no newlines."""
        if self._size == 0:
            return True
        with self._files.open_rows() as file:
            old = len(file.readline())
        new, blanks = self._rows.header(), b"," * columns
        thinned_rows = self._count_rows(self._thinned_size)

        def widened() -> Iterator[bytes]:
            yield new
            with self._files.open_rows() as file:
                file.seek(old)
                while chunk := file.read(_CHUNK):
                    yield chunk.replace(b"\n", blanks + b"\n")

        if not self._rewrite(widened):
            return False
        self._thinned_size += len(new) - old + thinned_rows * columns
        return True

    def _count_rows(self, end: int) -> int:
        """Rows below the header in the first `end` bytes."""
        lines = 0
        with self._files.open_rows() as file:
            while end > 0 and (chunk := file.read(min(_CHUNK, end))):
                end -= len(chunk)
                lines += chunk.count(b"\n")
        return lines - 1

    def _rewrite(self, chunks: Callable[[], Iterator[bytes]]) -> bool:
        """The file anew, and appending goes on at its new end."""
        try:
            with self._lock:
                self._size = self._files.replace_rows(chunks())
        except OSError as error:
            self._fail(error)
            return False
        return True

    def _to_parquet(self) -> None:
        from memdiag.recording.native.parquet import (
            csv_to_parquet,  # polars is not for `run`'s start
        )

        self._files.to_parquet(csv_to_parquet)

    def _sync_for_ever(self) -> None:
        """Waits for the disk in a thread of its own, so that sampling does not."""
        while not self._closing:
            self._wake.wait()
            self._wake.clear()
            with contextlib.suppress(OSError):  # a disk that fails will fail `write` as well
                with self._lock:
                    fd = os.dup(self._files.fd)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._skip_flushes = _RETRY_FLUSHES
        name = printable(str(self._files.rows))
        self.trouble = self.trouble or f"{error.strerror or error} ({name})"
