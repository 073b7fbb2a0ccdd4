"""`memdiag run`: start a command, record its memory, judge it, pass its status on."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from memdiag.cli.options import gate as cli_gate
from memdiag.cli.options import recording_options as cli_options
from memdiag.cli.options import tag_options as cli_tagging

# So that everything after COMMAND belongs to it, with and without "--" before it.
CONTEXT_SETTINGS = {"allow_interspersed_args": False}


@partial(cli_gate.gated, starts=True, records=True)
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
    step_regex: cli_tagging.StepRegex = None,
    phase_regex: cli_tagging.PhaseRegex = None,
    counter_regex: cli_tagging.CounterRegex = None,
    tags_from: cli_tagging.TagsFrom = None,
    *,
    gate: cli_gate.Gate,
) -> None:
    """Start COMMAND untouched, record its memory, and judge it when it ends.

    The report goes to stderr; stdout is COMMAND's own. Options for memdiag come before COMMAND.
    The third Ctrl-C leaves a COMMAND alone that ignores it.
    """
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
        tags=cli_tagging.wanted(
            steps=step_regex,
            phases=phase_regex,
            counters=counter_regex,
            source=tags_from,
            sees_output=True,
        ),
        command=command,
    )
    from memdiag.cli.measurement.run_session import launch

    raise typer.Exit(launch(command, options))
