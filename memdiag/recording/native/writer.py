"""Writes the native recording: one CSV file that is complete at any moment.

Rows are appended and never changed, so everything up to the last second survives the end of
memdiag. When the file has grown, it is replaced at once by a copy without the rows that
`downsampling` drops. Errors never stop the run: a full disk is kept as `trouble`, written rows
stay, and writing is tried again later.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, compress, repeat
from pathlib import Path
from typing import Any

from memdiag import safe_open
from memdiag.recording.native.atomic_file import RecordingFiles
from memdiag.recording.native.csv_rows import Rows
from memdiag.recording.native.downsampling import Downsampler
from memdiag.recording.native.sidecar import Sidecar, text_of
from memdiag.values.holders import ProbeFindings
from memdiag.values.measurements import Ending, Limit, Mark, Missing, Sample
from memdiag.values.sanitize import printable

# Rows at the end of the file are downsampled when they exceed this.
_COMPACT_BYTES = 12 << 20
# Size of the downsampled rows of a day; with the rows above, a file stays under 50 MB.
_DAY_BYTES = 30_000_000
_DAY_S, _MINUTE_S = 86_400.0, 60.0
_FLUSH_ROWS = 2000
# Flushes after which a full disk is tried again.
_RETRY_FLUSHES = 10
_CHUNK = 1 << 20


class Writer:
    """Writes a recording.

    No method raises OSError: `trouble` is the first error, or "".
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
        self._downsampler = None if full else Downsampler(interval_s=interval_s)
        self._pending: list[Sample] = []
        self._skip_flushes = 0
        self.trouble = ""
        self._size = 0  # of the file
        self._downsampled_rows = 0  # at the beginning of the file
        self._recent_bytes = 0  # written since
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._syncer = threading.Thread(target=self._sync_forever, daemon=True)
        self._syncer.start()
        self._try(self._files.begin)
        self._append(self._rows.header())
        self._try(lambda: self._files.write_sidecar(text_of(self._sidecar)))

    @property
    def path(self) -> Path:
        """The recording: the CSV file until `close` has converted it to Parquet."""
        return self._files.written

    def add(self, samples: Sequence[Sample]) -> None:
        """Add samples, ordered by time within each process."""
        self._pending.extend(samples)
        if len(self._pending) >= _FLUSH_ROWS:
            self.flush()

    def mark(self, mark: Mark) -> None:
        """Write a crossed threshold to the sidecar at once: memdiag may be killed next."""
        self._sidecar = replace(self._sidecar, marks=(*self._sidecar.marks, mark))
        with contextlib.suppress(OSError):  # it is written again at the end
            self._files.write_sidecar(text_of(self._sidecar))

    def describe(
        self, *, limits: Sequence[Limit], processes: Sequence[dict[str, Any]], found: ProbeFindings
    ) -> None:
        """Write what is known beside the rows so far, so that they are judged as at the end.

        processes, found: as in `close`, which writes them again.
        """
        self._sidecar = replace(
            self._sidecar,
            about={**self._sidecar.about, "processes": list(processes)},
            limits=tuple(limits),
            holders=found.holders,
            censuses=found.censuses,
            interventions=found.interventions,
        )
        with contextlib.suppress(OSError):  # it is written again at the end
            self._files.write_sidecar(text_of(self._sidecar))

    def flush(self) -> None:
        """Write everything, and have it synchronized to the disk."""
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
            self._downsample(samples)
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
        found: ProbeFindings | None = None,
    ) -> None:
        """Finish the recording; no samples can be added afterwards.

        processes: the processes of the run, as plain JSON values. found: by the probe in them.
        """
        found = found or ProbeFindings()
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
            holders=found.holders,
            censuses=found.censuses,
            interventions=found.interventions,
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
        """Write all of the data, or nothing: a part that was written is removed."""
        try:
            safe_open.write_all(self._files.fd, data)
        except OSError as error:
            self._fail(error)
            with contextlib.suppress(OSError):
                os.ftruncate(self._files.fd, self._size)
            return False
        self._size += len(data)
        self._recent_bytes += len(data)
        return True

    def _downsample(self, samples: Sequence[Sample]) -> None:
        if self._downsampler is None:
            return
        for sample in samples:
            self._downsampler.add(sample)
        if self._recent_bytes > _COMPACT_BYTES:
            self._compact(self._downsampler, samples[-1].at_s)

    def _compact(self, downsampler: Downsampler, now_s: float) -> None:
        """Drop rows that the downsampler does not keep. If that fails, they stay."""
        keep = downsampler.cut(now_s)
        compacted = self._rewrite(lambda: self._kept(keep))
        self._downsampled_rows += sum(keep) if compacted else len(keep)
        self._recent_bytes = 0
        share = math.log1p(now_s / _MINUTE_S) / math.log1p(_DAY_S / _MINUTE_S)
        downsampler.coarsen(self._size / (_DAY_BYTES * max(share, 0.05)))

    def _kept(self, keep: bytes) -> Iterator[bytes]:
        """The header, the rows that were downsampled before, and the others that are to be kept."""
        flags = chain(repeat(1, 1 + self._downsampled_rows), keep)
        with self._files.open_rows() as file:
            while lines := file.readlines(_CHUNK):
                yield b"".join(compress(lines, flags))

    def _widen(self, columns: int) -> bool:
        """Write a new header, and empty cells at the end of each row. Cells contain no newlines."""
        if self._size == 0:
            return True
        with self._files.open_rows() as file:
            old = len(file.readline())
        new, blanks = self._rows.header(), b"," * columns

        def widened() -> Iterator[bytes]:
            yield new
            with self._files.open_rows() as file:
                file.seek(old)
                while chunk := file.read(_CHUNK):
                    yield chunk.replace(b"\n", blanks + b"\n")

        return self._rewrite(widened)

    def _rewrite(self, chunks: Callable[[], Iterator[bytes]]) -> bool:
        """Replace the file, and continue appending at its new end."""
        try:
            with self._lock:
                self._size = self._files.replace_rows(chunks())
        except OSError as error:
            self._fail(error)
            return False
        return True

    def _to_parquet(self) -> None:
        # polars would slow the start of `run`
        from memdiag.recording.native.parquet import csv_to_parquet

        self._files.to_parquet(csv_to_parquet)

    def _sync_forever(self) -> None:
        """Wait for the disk in a thread of its own, so that sampling does not."""
        while not self._closing:
            self._wake.wait()
            self._wake.clear()
            with contextlib.suppress(OSError):  # a failing disk fails `write` as well
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
