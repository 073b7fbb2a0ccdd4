"""The recording that `run` and `watch` write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memdiag.cli.options import Options

if TYPE_CHECKING:
    from memdiag.recording.writing import Writer


def recorder(path: Path, about: dict[str, Any], options: Options) -> Callable[[], Writer]:
    """Opens the recording at `path`, for when there is something to be written."""

    def opened() -> Writer:
        from memdiag.recording.writing import Writer  # what it needs is not for `run`'s start

        return Writer(
            path,
            about=about,
            interval_s=options.interval_s,
            full=options.full,
            force=options.force,
        )

    return opened
