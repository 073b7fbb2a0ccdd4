"""A run in the place for runs, as `memdiag list` shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """A run that was kept.

    id: name of its directory. recording: path of its recording. began_at: local time.
    command: as it was typed; () if unknown. size_bytes: of its files.
    is_recording: it is being written. report: the JSON document of its report; {} without one.
    others: names in its directory that are not of memdiag's files.
    """

    id: str
    recording: Path
    began_at: datetime
    command: tuple[str, ...]
    size_bytes: int
    is_recording: bool
    report: dict[str, Any] = field(default_factory=dict)
    others: tuple[str, ...] = ()
