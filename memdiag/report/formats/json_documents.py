"""The JSON documents of `analyze`, `run`, `watch` and `compare`: the values, encoded by `codec`.

Every key is fixed. A value of a series is in the series' `unit`; a key that ends in `_x` is a
position or a length on its `axis`. Schemas are generated from the types by `tools/schemas.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from memdiag.report.sections import runs_table
from memdiag.report.text import argument_text
from memdiag.values.codec import plain
from memdiag.values.comparison import Comparison
from memdiag.values.findings import CensusFinding, Diagnosis, Finding, GrownPlace, RecordingFinding
from memdiag.values.fleet import FleetSummary
from memdiag.values.history import History
from memdiag.values.kept_run import KeptRun
from memdiag.values.verdict import Argument, Side

SCHEMA_VERSION = 2
_SUMMARY_VERSION = 1
# How every report begins; a file that begins so may be replaced by another report.
BEGINNING = '{\n  "schema_version": '

Values = dict[str, Any]


def diagnosis(found: Diagnosis, exit_code: int | None = None) -> Values:
    """The document of a diagnosis, described by `diagnosis.schema.json`.

    exit_code: None without a command, and then without this key.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": found.verdict.value,
        **_exit_code(exit_code),
        "recordings": [_recording(one) for one in found.recordings],
        "failures": plain(found.failures),
    }


def comparison(compared: Comparison, exit_code: int | None = None) -> Values:
    """The document of `memdiag compare`, described by `comparison.schema.json`.

    exit_code: as for `diagnosis`.
    """
    return {"schema_version": SCHEMA_VERSION, **_exit_code(exit_code), **plain(compared)}


def summary(found: FleetSummary | History, exit_code: int | None = None) -> Values:
    """The document of many recordings, or of their history. exit_code: as for `diagnosis`."""
    return {"schema_version": _SUMMARY_VERSION, **_exit_code(exit_code), **plain(found)}


def _exit_code(code: int | None) -> Values:
    return {} if code is None else {"exit_code": int(code)}


def census(found: CensusFinding, grown: Sequence[GrownPlace]) -> Values:
    """The document of `memdiag census`: `recordings[].census[0]` and `grown` of a diagnosis."""
    return {"schema_version": SCHEMA_VERSION, **plain(found), "grown": plain(tuple(grown))}


def runs(kept: Sequence[KeptRun]) -> Values:
    """The document of `memdiag list`."""
    return {"schema_version": SCHEMA_VERSION, "runs": [_run(run) for run in kept]}


def text(document: Mapping[str, Any]) -> str:
    """A document as text. It is ASCII, so that names cannot act upon a terminal."""
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def schema_text(document: str) -> str:
    """The JSON Schema (2020-12) of a document: "diagnosis" or "comparison"."""
    shipped = resources.files("memdiag.report").joinpath(f"{document}.schema.json")
    return shipped.read_text(encoding="utf-8")


def _run(run: KeptRun) -> Values:
    found = runs_table.verdict_of(run.report)
    growth = runs_table.growth_of(run.report)
    return {
        "id": run.id,
        "recording": str(run.recording),
        "began_at": run.began_at.isoformat(),
        "command": list(run.command),
        "verdict": found.value if found is not None else None,
        "growth": plain(growth),
        "size_bytes": run.size_bytes,
        "is_recording": run.is_recording,
    }


def _recording(found: RecordingFinding) -> Values:
    values: Values = plain(found)
    values["series"] = [_series(finding) for finding in found.series]
    for shown, capacity in zip(values["capacity"], found.capacity, strict=True):
        shown["headroom_bytes"] = plain(capacity.headroom_bytes)
    return values


def _series(finding: Finding) -> Values:
    values: Values = plain(finding)
    for shown, phase in zip(values["phases"], finding.phases, strict=True):
        shown["attributed"] = phase.is_attributed
    values["trail"] = [_argument(argument, finding) for argument in finding.trail]
    return values


def _argument(argument: Argument, finding: Finding) -> Values:
    """The text is the finished sentence; an argument that was not considered has no verdict."""
    values: Values = plain(argument)
    values["text"] = argument_text.sentence(argument, finding)
    values["is_decisive"] = argument is argument_text.decisive(finding)
    if argument.side is Side.NOT_CONSIDERED:
        values["verdict"] = values["reason"] = None
    return values
