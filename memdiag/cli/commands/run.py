"""`memdiag run`: start a command, record its memory, judge it, pass its status on."""

from __future__ import annotations

from typing import Annotated

import typer

from memdiag.cli.options.gate import GateOptions
from memdiag.cli.options.outputs import ReportOptions
from memdiag.cli.options.page import PageOptions
from memdiag.cli.options.recording_options import RecordingOptions, checked
from memdiag.cli.options.usage_errors import suspicions
from memdiag.cli.output.messages import warn

# Everything after COMMAND belongs to it, with and without "--" before it.
CONTEXT_SETTINGS = {"allow_interspersed_args": False}
WITHOUT = ("json", "attach")
USAGE = "[OPTIONS] [--] COMMAND [ARG]..."


def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="The command to start.")],
    recording: RecordingOptions,
    report: ReportOptions,
    gate: GateOptions,
    page: PageOptions,
) -> None:
    """Start COMMAND unmodified, record its memory, and judge it when it ends.

    Options for memdiag come before COMMAND. The report goes to stderr. If COMMAND ignores Ctrl-C,
    the third one leaves it running.
    """
    options = checked(recording, report, gate, page, command=command)
    warn(suspicions(command, options.gate.metrics))
    from memdiag.cli.measurement.run_session import launch

    raise typer.Exit(launch(command, options))
