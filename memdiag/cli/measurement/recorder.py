"""The recording that `run` and `watch` write."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from memdiag.cli.options.recording_options import Options

if TYPE_CHECKING:
    from memdiag.recording.native.atomic_file import RecordingFiles
    from memdiag.recording.native.writer import Writer


def recorder(
    files: RecordingFiles, about: dict[str, Any], options: Options
) -> Callable[[], Writer]:
    """Begins the recording, for when there is something to be written."""

    def opened() -> Writer:
        from memdiag.recording.native.writer import Writer  # what it needs is not for `run`'s start

        return Writer(files, about=about, interval_s=options.interval_s, full=options.full)

    return opened
