"""`memdiag watch`: record a process that runs already, and judge it."""

from __future__ import annotations

from typing import Annotated

import typer

from memdiag.cli import gate as cli_gate
from memdiag.cli import options as cli_options


def watch(  # noqa: PLR0917 - one per option
    pid: Annotated[int, typer.Option("--pid", "-p", metavar="PID", help="The process to watch.")],
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
    junitxml: cli_gate.JunitXml = None,
    markdown: cli_gate.Markdown = None,
) -> None:
    """Watch process PID and its children without touching them, and judge them at the end.

    Ends when the process ends, after --duration, or on Ctrl-C, which is the usual way: the exit
    code is the verdict's then, too. Steps and phases are seen where the process was started under
    `memdiag run`.
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
    from memdiag.cli.watching import follow

    raise typer.Exit(follow(pid, options))
