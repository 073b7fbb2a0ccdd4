"""`memdiag census`: what is in memory in a running process, and what holds it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from memdiag.cli.options.page import PageOptions
from memdiag.cli.options.pid import PidOption, only_pid
from memdiag.cli.output.printing import show

USAGE = "[OPTIONS] PID"
WITHOUT = ("why", "verbose", "quiet")

Process = Annotated[
    list[str] | None, typer.Argument(metavar="PID", help="The process to look into.")
]
Attach = Annotated[
    bool, typer.Option("--attach", help="Load the probe into the process if it is not there.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the census as JSON, and nothing else.")]


def census(
    process: Process = None,
    pid: PidOption = None,
    attach: Attach = False,
    as_json: Json = False,
    *,
    page: PageOptions,
) -> None:
    """List the largest tensors and arrays of process PID with their holders, and its objects.

    The process was started under `memdiag run`, or imports memdiag.auto; --attach loads the probe
    into others, which stops them for some milliseconds. From the second census on, it lists growth
    since the first. Exits with 4 if the process has no probe or does not answer.
    """
    from rich.console import Group

    from memdiag.analysis.cause.in_memory import grown_places, last_census
    from memdiag.capture.probelink.census_request import take_census
    from memdiag.report.formats import json_documents
    from memdiag.report.sections import in_memory
    from memdiag.report.text.screen import Screen

    number = only_pid([*(process or ()), *(pid or ())], "memdiag census")
    taken = take_census(number, attach=attach)
    found, grown = last_census(taken.censuses), grown_places(taken.holders)
    if as_json:
        sys.stdout.write(json_documents.text(json_documents.census(found, grown)))
        return

    def render(width: int, ascii_only: bool) -> Group:
        screen = Screen(width=width, ascii_only=ascii_only)
        return Group(*in_memory.of_process(found, screen), *in_memory.places(grown, screen))

    show(render, page)
