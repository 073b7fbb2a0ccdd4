"""`memdiag watch`: record a running process, and judge it."""

from __future__ import annotations

from typing import Annotated

import typer

from memdiag.cli.options.gate import GateOptions
from memdiag.cli.options.outputs import ReportOptions
from memdiag.cli.options.recording_options import RecordingOptions, checked

WITHOUT = ("exit_code",)


def watch(
    pid: Annotated[int, typer.Option("--pid", "-p", metavar="PID", help="The process to watch.")],
    recording: RecordingOptions,
    report: ReportOptions,
    gate: GateOptions,
) -> None:
    """Watch process PID and its children without changing them, and judge them at the end.

    Ends when the process ends, after --duration, or on Ctrl-C, which is the usual way and does not
    change the exit code. Steps and phases are recorded if the process was started under `memdiag
    run`, with --attach, which stops it for some milliseconds, or from its log (--tags-from).
    """
    options = checked(recording, report, gate)
    from memdiag.cli.measurement.watch_session import follow

    raise typer.Exit(follow(pid, options))
