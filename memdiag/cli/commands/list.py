"""`memdiag list`: the runs that were kept."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from memdiag.cli.options.gate import GateOptions, place_of_runs, settle
from memdiag.cli.options.page import PageOptions
from memdiag.cli.output.judge import judged
from memdiag.cli.output.messages import say
from memdiag.cli.output.printing import show
from memdiag.errors import UsageError
from memdiag.values.findings import Diagnosis
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.recording.native.runs import Place
    from memdiag.values.kept_run import KeptRun

WITHOUT = ("why", "verbose", "quiet")
_OLDER = re.compile(r"memdiag-\d{8}-\d{6}(-\d+)?\.(csv|parquet)")

Json = Annotated[bool, typer.Option("--json", help="Print the runs as JSON, and nothing else.")]


def list(page: PageOptions, as_json: Json = False) -> None:  # noqa: A001 - the command's name
    """List the runs that `run` and `watch` have kept, the newest first: when, command, verdict,
    growth, and size on disk.

    The name of a run, or last, last~1, ... stands for its recording in report, compare and analyze.
    Runs are kept in .memdiag of the working directory, or where MEMDIAG_DIR or dir in
    [tool.memdiag] say. A run that has ended without a report, as those of memdiag.record() do, is
    judged now.
    """
    from memdiag.recording.native.runs import runs_in
    from memdiag.report.formats import json_documents
    from memdiag.report.sections import runs_table
    from memdiag.report.text.screen import Screen

    place = place_of_runs()
    runs = [_with_report(place, run) for run in runs_in(place)]
    if as_json:
        sys.stdout.write(json_documents.text(json_documents.runs(runs)))
        return
    if runs:
        from rich.console import Group

        now = datetime.now().astimezone()
        show(lambda w, a: Group(*runs_table.table(runs, Screen(width=w, ascii_only=a), now)), page)
    else:
        say(f"there are no runs in {printable(str(place.runs))}")
    if older := _older_recordings():
        counted = "1 older recording is" if older == 1 else f"{older:,} older recordings are"
        say(f"{counted} in this directory: memdiag analyze 'memdiag-*.csv'")


def _older_recordings() -> int:
    """The number of recordings in the working directory, where runs were kept before `.memdiag`."""
    try:
        return sum(_OLDER.fullmatch(name) is not None for name in os.listdir())  # noqa: PTH208
    except OSError:
        return 0


def _with_report(place: Place, run: KeptRun) -> KeptRun:
    """The run with its report, which is made and kept if there is none; without, if it cannot be
    read."""
    if run.report or run.is_recording:
        return run
    from memdiag.cli.options.inputs import Inputs
    from memdiag.recording.native.runs import keep_report, resolve
    from memdiag.report.formats import json_documents

    gate = settle(GateOptions())
    try:
        source = str(resolve(place, run.id))
    except UsageError:  # there is no recording in it
        return run
    found = Inputs().findings([source], lambda recording: judged(recording, gate))
    if not found:
        return run
    document = json_documents.diagnosis(Diagnosis(recordings=tuple(found)))
    keep_report(place, run, json_documents.text(document))
    return replace(run, report=document)
