"""`memdiag watch`: record a running process, and judge it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memdiag.capture.process.attach import own_environment
from memdiag.cli.options.gate import GateOptions, settle
from memdiag.cli.options.outputs import ReportOptions, reports
from memdiag.cli.options.page import PageOptions
from memdiag.cli.options.pid import PidOption, only_pid
from memdiag.cli.options.recording_options import (
    DEFAULT_INTERVAL,
    RecordingOptions,
    checked,
    interval,
)
from memdiag.cli.options.usage_errors import suspicions
from memdiag.cli.output.messages import warn
from memdiag.cli.output.printing import show
from memdiag.errors import UsageError
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.cli.measurement.watch_all import Request

USAGE = "[OPTIONS] [PID]"
WITHOUT = ("exit_code", "intervene", "snapshot")


def watch(
    recording: RecordingOptions,
    report: ReportOptions,
    gate: GateOptions,
    page: PageOptions,
    process: Annotated[
        list[str] | None,
        typer.Argument(metavar="PID", help="The process to watch; without it, a list of them."),
    ] = None,
    pid: PidOption = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Watch every training of this machine, without recording."),
    ] = False,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="USER", help="With --all: only trainings of USER."),
    ] = None,
) -> None:
    """Watch process PID and its children, and judge them when it ends, after --duration, or on
    Ctrl-C, which does not change the exit code.

    Steps and phases are recorded if it was started under `memdiag run`, from its log (--tags-from),
    or with --attach, which stops it for some milliseconds. --all: a table of all trainings.
    """
    named = [*(process or ()), *(pid or ())]
    if everything or user is not None:
        request = _all_request(recording, report, gate, page, named=named, user=user)
        from memdiag.cli.measurement.watch_all import watch_all

        raise typer.Exit(watch_all(request))
    if not named:
        _list_processes(page)
    number = only_pid(named, "memdiag watch")
    options = checked(recording, report, gate, page, environ=own_environment(number))
    warn(suspicions((), options.gate.metrics))
    from memdiag.cli.measurement.watch_session import follow

    raise typer.Exit(follow(number, options))


def _all_request(
    recording: RecordingOptions,
    report: ReportOptions,
    gate: GateOptions,
    page: PageOptions,
    *,
    named: Sequence[str],
    user: str | None,
) -> Request:
    """What `--all` asks for. Raises UsageError for what it cannot do."""
    from memdiag.capture.process.trainings import uid_of
    from memdiag.cli.measurement.watch_all import INTERVAL_S, Request

    if named:
        raise UsageError("--all and a PID exclude each other", remedy="give one of them")
    of_one = {
        "--attach": recording.attach,
        "--census": recording.census,
        "--output": recording.output,
        "--stop-on": recording.stop_on,
        "--tags-from": recording.tags_from,
        "--to": recording.to,
        "--on": gate.on,
        **{one.where: one.path for one in reports(report)},
    }
    for name, value in of_one.items():
        if value:
            raise UsageError(
                f"{name} is for one process, not for --all", remedy="memdiag watch PID"
            )
    uid = None if user is None else uid_of(user)
    if user is not None and uid is None:
        raise UsageError(f"unknown user {printable(user)!r} (--user)", remedy="getent passwd")
    is_default = recording.interval_s == interval(DEFAULT_INTERVAL)
    return Request(
        uid=uid,
        interval_s=INTERVAL_S if is_default else recording.interval_s,
        duration_s=recording.duration_s,
        is_json=report.json,
        gate=settle(gate),
        page=page,
    )


def _list_processes(page: PageOptions) -> None:
    """Print the Python processes that can be chosen from."""
    from rich.console import Group

    from memdiag.capture.process.attach import python_processes
    from memdiag.report.sections.processes_table import table
    from memdiag.report.text.screen import Screen

    found = python_processes()
    if found:
        show(lambda w, a: Group(*table(found, Screen(width=w, ascii_only=a))), page)
        raise UsageError("no process to watch", remedy=f"memdiag watch {found[0].pid}")
