"""The sidecar of a native recording: NAME.meta.json beside NAME.csv or NAME.parquet.

A recording can be read without its sidecar, or with a damaged one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memdiag.safe_open import read_regular
from memdiag.values.codec import plain
from memdiag.values.holders import ProcessCensuses, ProcessHolders, ProcessInterventions
from memdiag.values.measurements import Ending, Limit, Mark, Missing, Role
from memdiag.values.sanitize import printable

FORMAT_VERSION = 2
SIDECAR_BEGINNING = '{\n "memdiag_recording"'
_MAX_BYTES = 4 << 20
# Made printable by the reports that show it.
_FREE_FORM = ("about", "cost")
_ROLES = frozenset(role.value for role in Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """Everything beside the rows. complete: memdiag finished the recording."""

    about: dict[str, Any] = field(default_factory=dict)
    complete: bool = False
    ending: Ending | None = None
    missing: tuple[Missing, ...] = ()
    limits: tuple[Limit, ...] = ()
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()
    cost: dict[str, Any] = field(default_factory=dict)
    holders: tuple[ProcessHolders, ...] = ()
    censuses: tuple[ProcessCensuses, ...] = ()
    interventions: tuple[ProcessInterventions, ...] = ()


def sidecar_path(recording: Path) -> Path:
    """Path of the sidecar of a recording."""
    return recording.with_name(recording.stem + ".meta.json")


def rows_path(recording: Path) -> Path:
    """Path of the CSV file, which is converted at the end if the recording is a Parquet file."""
    return recording.with_suffix(".csv") if recording.suffix == ".parquet" else recording


def files_of(recording: Path) -> tuple[Path, ...]:
    """All files of a recording."""
    rows = rows_path(recording)
    return tuple(dict.fromkeys((recording, rows, sidecar_path(rows))))


def text_of(sidecar: Sidecar) -> str:
    """The sidecar as the text of its file."""
    return json.dumps({"memdiag_recording": FORMAT_VERSION, **plain(sidecar)}, indent=1) + "\n"


def read_sidecar(path: Path) -> Sidecar | None:
    """The sidecar, or None if it is missing or damaged. Its texts are made printable."""
    import msgspec  # takes longer to import than `memdiag run` may take to start

    try:
        document = json.loads(read_regular(path, most_bytes=_MAX_BYTES))
        values = {
            key: value if key in _FREE_FORM else _printable(value)
            for key, value in document.items()
            if value is not None
        }
        for entry in values.get("missing", ()):
            if "why" not in entry:  # version 1
                entry["why"] = {key: entry.get(key, "") for key in ("reason", "remedy")}
        for limit in values.get("limits", ()):  # a newer memdiag may know more roles
            limit["roles"] = [role for role in limit["roles"] if role in _ROLES]
        return msgspec.convert(values, Sidecar, strict=False)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_printable(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _printable(entry) for key, entry in value.items()}
    return value
