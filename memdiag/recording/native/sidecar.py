"""What is kept beside a native recording: NAME.meta.json next to NAME.csv or NAME.parquet.

A recording without its sidecar, or with a damaged one, is still a recording.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from memdiag.safe_open import read_regular
from memdiag.values.measurements import (
    Cause,
    Ending,
    Limit,
    Mark,
    MarkLevel,
    Missing,
    Role,
    Unavailable,
)
from memdiag.values.sanitize import printable

FORMAT_VERSION = 1
_MAX_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A recording's circumstances. `complete`: memdiag itself came to the recording's end."""

    about: dict[str, Any] = field(default_factory=dict)
    complete: bool = False
    ending: Ending | None = None
    missing: tuple[Missing, ...] = ()
    limits: tuple[Limit, ...] = ()
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()
    cost: dict[str, Any] = field(default_factory=dict)


def sidecar_path(recording: Path) -> Path:
    """Where the sidecar of a recording is."""
    return recording.with_name(recording.stem + ".meta.json")


def rows_path(recording: Path) -> Path:
    """The CSV file that a recording is until a Parquet file is made of it at its end."""
    return recording.with_suffix(".csv") if recording.suffix == ".parquet" else recording


def files_of(recording: Path) -> tuple[Path, ...]:
    """All files of a recording."""
    rows = rows_path(recording)
    return tuple(dict.fromkeys((recording, rows, sidecar_path(rows))))


def text_of(sidecar: Sidecar) -> str:
    """The sidecar as the text of its file."""
    document = {"memdiag_recording": FORMAT_VERSION, **_plain(sidecar)}
    return json.dumps(document, indent=1, default=str) + "\n"


def read_sidecar(path: Path) -> Sidecar | None:
    """The sidecar, or None where there is none or it is damaged."""
    try:
        return _parsed(json.loads(read_regular(path, most_bytes=_MAX_BYTES)))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _plain(sidecar: Sidecar) -> dict[str, Any]:
    return {
        "complete": sidecar.complete,
        "about": sidecar.about,
        "ending": None if sidecar.ending is None else _plain_ending(sidecar.ending),
        "missing": [
            {"metric": m.metric, "process": m.process, **asdict(m.why)} for m in sidecar.missing
        ],
        "limits": [
            {
                "name": limit.name,
                "value_bytes": limit.value_bytes,
                "roles": sorted(role.value for role in limit.roles),
                "metric": limit.metric,
                "per_process": limit.per_process,
            }
            for limit in sidecar.limits
        ],
        "marks": [{**asdict(mark), "level": mark.level.value} for mark in sidecar.marks],
        "notes": list(sidecar.notes),
        "cost": sidecar.cost,
    }


def _parsed(document: dict[str, Any]) -> Sidecar:
    ending = document.get("ending")
    return Sidecar(
        about=dict(document.get("about") or {}),
        complete=bool(document.get("complete")),
        ending=None if ending is None else _ending(ending),
        missing=tuple(_missing(document.get("missing") or ())),
        limits=tuple(_limits(document.get("limits") or ())),
        marks=tuple(_marks(document.get("marks") or ())),
        notes=tuple(printable(str(note)) for note in document.get("notes") or ()),
        cost=dict(document.get("cost") or {}),
    )


def _plain_ending(ending: Ending) -> dict[str, Any]:
    return {**asdict(ending), "cause": None if ending.cause is None else ending.cause.value}


def _ending(plain: dict[str, Any]) -> Ending:
    causes = {cause.value: cause for cause in Cause}
    return Ending(
        code=_whole(plain.get("code")),
        signal=_whole(plain.get("signal")),
        why=printable(str(plain.get("why", ""))),
        cause=causes.get(str(plain.get("cause"))),
        detail=printable(str(plain.get("detail", ""))),
        at_bytes=_whole(plain.get("at_bytes")),
        limit_bytes=_whole(plain.get("limit_bytes")),
    )


def _whole(plain: Any) -> int | None:
    return None if plain is None else int(plain)


def _missing(plain: Sequence[dict[str, Any]]) -> list[Missing]:
    return [
        Missing(
            metric=printable(str(entry["metric"])),
            process=printable(str(entry.get("process", ""))),
            why=Unavailable(
                reason=printable(str(entry.get("reason", ""))),
                remedy=printable(str(entry.get("remedy", ""))),
            ),
        )
        for entry in plain
    ]


def _limits(plain: Sequence[dict[str, Any]]) -> list[Limit]:
    known = {role.value: role for role in Role}
    return [
        Limit(
            name=printable(str(entry["name"])),
            value_bytes=int(entry["value_bytes"]),
            roles=frozenset(known[role] for role in entry.get("roles", ()) if role in known),
            metric=printable(str(entry.get("metric", ""))),
            per_process=bool(entry.get("per_process")),
        )
        for entry in plain
    ]


def _marks(plain: Sequence[dict[str, Any]]) -> list[Mark]:
    texts = ("threshold", "metric", "process", "phase", "limit")
    return [
        Mark(
            level=MarkLevel(entry["level"]),
            threshold_bytes=int(entry["threshold_bytes"]),
            at_s=float(entry["at_s"]),
            value_bytes=int(entry["value_bytes"]),
            step=_whole(entry.get("step")),
            **{name: printable(str(entry.get(name, ""))) for name in texts},
        )
        for entry in plain
    ]
