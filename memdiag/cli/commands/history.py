"""`memdiag history`: since when do runs take more memory, or grow faster?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated

import typer

from memdiag.cli import lazy_imports
from memdiag.cli.options import outputs
from memdiag.cli.options.declare import flag, option, repeatable
from memdiag.cli.options.outputs import Named
from memdiag.cli.options.page import PageOptions
from memdiag.cli.output.printing import show_summary
from memdiag.errors import Exit
from memdiag.values.units import invalid

USAGE = "[OPTIONS] RESULTS"
WITHOUT = ("why", "verbose")
_AGO = re.compile(r"(\d+)([dw])")
_DAYS = {"d": 1, "w": 7}

Results = Annotated[
    Path,
    typer.Argument(
        metavar="RESULTS", help="A file that memdiag analyze --results has written.", parser=Path
    ),
]


def earliest(text: str) -> str:
    """The ISO time of a date, or of `30d` or `4w` ago; "" for "". Raises UsageError."""
    if not text:
        return ""
    if match := _AGO.fullmatch(text):
        days = int(match[1]) * _DAYS[match[2]]
        try:
            return (datetime.now(timezone.utc) - timedelta(days=days)).isoformat()
        except OverflowError:
            return ""
    try:
        return datetime.fromisoformat(text).isoformat()
    except ValueError as error:
        raise invalid(text, "--since", "not a date", "--since 2026-01-31, --since 30d") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """Which runs are compared."""

    since: str = option(
        "--since", "DATE", "Only runs since then: 2026-01-31, 30d, 4w.", default="", parse=earliest
    )
    group_by: str = option(
        "--group-by",
        "LABELS",
        "Compare runs with the same of these labels: branch, image, script, directory, ...; none: "
        "all runs.",
        default="script",
    )
    metric: tuple[str, ...] = repeatable(
        "--metric", "NAME", "Only this metric (rss_bytes). Repeatable."
    )
    fail_on_increase: bool = flag(
        "--fail-on-increase", help="Exit with 1 if the last change of a series is an increase."
    )
    json: bool = flag("--json", help="Print the history as JSON, and nothing else.")
    html: Path | None = option(
        "--html", "FILE", "Write the history as HTML with a chart for each series.", parse=Path
    )
    force: bool = flag("--force", help="Overwrite FILE even if memdiag did not write it.")


def history(results: Results, options: HistoryOptions, page: PageOptions) -> None:
    """Show since when runs take more memory or grow faster, judged against the noise of the runs.

    Peak memory and growth rate of each metric are compared over the runs in RESULTS, in the order
    in which they were started. A change has at least four runs before it and after it, and a
    p-value of 0.01 at most, by permutations of the runs, adjusted for the number of series. Exits
    with 0, or 2 for a file that is not one of results.
    """
    written = [] if options.html is None else [Named(path=options.html, where="--html")]
    inputs = [Named(path=results, where="an input")]
    outputs.check(written, inputs=inputs, force=options.force)
    lazy_imports.import_numpy()
    from memdiag.fleet import history as of_results
    from memdiag.report.formats import history_text

    given = options.group_by.strip()
    labels = () if given == "none" else tuple(part.strip() for part in given.split(","))
    found = of_results.history(results, labels, since=options.since, metrics=options.metric)
    last = [trend.changes[-1] for trend in found.trends if trend.changes]
    increased = any(change.is_increase for change in last)
    code = Exit.LEAK if options.fail_on_increase and increased else Exit.NO_LEAK
    for output in written:
        from memdiag.report.formats.html import page as html

        outputs.write(output, html.history(found, code), force=options.force)
    show_summary(found, code, history_text, page, as_json=options.json)
    raise typer.Exit(code)
