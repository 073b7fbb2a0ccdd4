"""`memdiag run`: start a command, record its memory, judge it, pass its status on."""

from __future__ import annotations

from typing import Annotated

import typer

from memdiag.cli import gate as cli_gate
from memdiag.cli import options as cli_options

# So that everything after COMMAND belongs to it, with and without "--" before it.
CONTEXT_SETTINGS = {"allow_interspersed_args": False}


def run(  # noqa: PLR0917 - one per option
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="The command to start.")],
    interval: cli_options.Interval = "0.1s",
    output: cli_options.Output = None,
    force: cli_options.Force = False,
    full: cli_options.Full = False,
    quiet: cli_options.Quiet = False,
    duration: cli_options.Duration = None,
    stop_on: cli_options.StopOnOption = None,
    json_file: cli_options.JsonFile = None,
    limit: cli_options.LimitOption = None,
    max_growth: cli_gate.MaxGrowth = None,
    max_peak: cli_gate.MaxPeak = None,
    max_variation: cli_gate.MaxVariation = None,
    after_step: cli_gate.AfterStep = None,
    after_time: cli_gate.AfterTime = None,
    max_tensors_growth: cli_gate.MaxTensorsGrowth = None,
    fail_on: cli_gate.FailOnOption = None,
    inconclusive: cli_gate.InconclusiveOption = None,
    exit_code: cli_gate.ExitCodeOption = None,
    junitxml: cli_gate.JunitXml = None,
    markdown: cli_gate.Markdown = None,
) -> None:
    """Start COMMAND untouched, record its memory, and judge it when it ends.

    The report goes to stderr; stdout is COMMAND's own. Options for memdiag come before COMMAND.
    The third Ctrl-C leaves a COMMAND alone that ignores it.
    """
    gate = cli_gate.settle(
        max_growth=max_growth,
        max_peak=max_peak,
        max_variation=max_variation,
        after_step=after_step,
        after_time=after_time,
        max_tensors_growth=max_tensors_growth,
        fail_on=fail_on,
        inconclusive=inconclusive,
        exit_code=exit_code,
        limit=limit,
        junitxml=junitxml,
        markdown=markdown,
    )
    options = cli_options.checked(
        interval=interval,
        output=output,
        force=force,
        full=full,
        quiet=quiet,
        duration=duration,
        stop_on=stop_on,
        json_file=json_file,
        gate=gate,
    )
    from memdiag.cli.launching import launch

    raise typer.Exit(launch(command, options))
