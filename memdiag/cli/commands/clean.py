"""`memdiag clean`: remove old runs."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from memdiag.cli.options.declare import number
from memdiag.cli.options.gate import place_of_runs
from memdiag.cli.output.messages import in_words, say
from memdiag.errors import Exit, UsageError
from memdiag.values.sanitize import printable
from memdiag.values.units import parse_seconds

if TYPE_CHECKING:
    from memdiag.values.kept_run import KeptRun

Keep = Annotated[str, typer.Option("--keep", metavar="N", help="Keep the newest N runs.")]
Older = Annotated[
    str, typer.Option("--older", metavar="TIME", help="Remove only runs older than this: 30d, 12h.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def clean(keep: Keep = "20", older: Older = "", yes: Yes = False) -> None:
    """Remove old runs: all but the newest 20, or as --keep and --older say.

    Asks first. Runs that are being recorded stay, and so does the directory of a run with any file
    that memdiag did not write. Recordings elsewhere (--output) are not looked at.
    """
    from memdiag.recording.native.runs import remove, runs_in
    from memdiag.report.sections.runs_table import total

    kept = int(number(keep, "--keep", low=0, whole=True))
    place = place_of_runs()
    age_s = parse_seconds(older, "--older") if older else 0.0
    before = datetime.now().astimezone() - timedelta(seconds=age_s)
    runs = [run for run in runs_in(place)[kept:] if run.began_at <= before]
    chosen = [run for run in runs if not run.is_recording and not run.others]
    for run in runs:
        if run.others:
            named = printable(", ".join(run.others[:3]))
            say(f"{printable(run.id)} stays: it has files that memdiag did not write ({named})")
    if not chosen:
        say(f"there is nothing to remove in {printable(str(place.runs))}")
        return
    if not yes and not _is_confirmed(f"Remove {total(chosen)} from {printable(str(place.runs))}?"):
        say("nothing was removed")
        return
    removed: list[KeptRun] = []
    for run in chosen:
        try:
            remove(place, run)
            removed.append(run)
        except OSError as error:
            say(f"{printable(run.id)} could not be removed: {in_words(error)}")
    say(f"removed {total(removed)}")
    raise typer.Exit(Exit.NO_LEAK if len(removed) == len(chosen) else Exit.USAGE)


def _is_confirmed(question: str) -> bool:
    """Ask. Raises UsageError if nobody can answer."""
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked here", remedy="memdiag clean --yes does not ask")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
