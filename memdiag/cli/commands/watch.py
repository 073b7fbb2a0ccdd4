"""`memdiag watch`: record a process that runs already, and judge it."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from memdiag.cli.options import gate as cli_gate
from memdiag.cli.options import recording_options as cli_options
from memdiag.cli.options import tag_options as cli_tagging

Attach = Annotated[
    bool, typer.Option("--attach", help="Let the probe in: steps, phases, tensors, exact meters.")
]


@partial(cli_gate.gated, records=True)
def watch(  # noqa: PLR0917 - one per option
    pid: Annotated[int, typer.Option("--pid", "-p", metavar="PID", help="The process to watch.")],
    interval: cli_options.Interval = "0.1s",
    output: cli_options.Output = None,
    force: cli_options.Force = False,
    full: cli_options.Full = False,
    quiet: cli_options.Quiet = False,
    duration: cli_options.Duration = None,
    stop_on: cli_options.StopOnOption = None,
    json: cli_options.JsonOut = False,
    json_file: cli_options.JsonFile = None,
    step_regex: cli_tagging.StepRegex = None,
    phase_regex: cli_tagging.PhaseRegex = None,
    counter_regex: cli_tagging.CounterRegex = None,
    tags_from: cli_tagging.TagsFromFile = None,
    attach: Attach = False,
    *,
    gate: cli_gate.Gate,
) -> None:
    """Watch process PID and its children without touching them, and judge them at the end.

    Ends when the process ends, after --duration, or on Ctrl-C, which is the usual way: the exit
    code is the verdict's then, too. Steps and phases are seen where the process was started under
    `memdiag run`, or with --attach: that stops it for some milliseconds. Its log tells them, too
    (--tags-from).
    """
    options = cli_options.checked(
        interval=interval,
        output=output,
        force=force,
        full=full,
        quiet=quiet,
        duration=duration,
        stop_on=stop_on,
        json=json,
        json_file=json_file,
        gate=gate,
        tags=cli_tagging.wanted(
            steps=step_regex,
            phases=phase_regex,
            counters=counter_regex,
            source=tags_from,
            sees_output=False,
        ),
    )
    from memdiag.cli.measurement.watch_session import follow

    raise typer.Exit(follow(pid, options, let_in=attach))
