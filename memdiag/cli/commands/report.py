"""`memdiag report`: the report of a run again."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memdiag.cli.options import outputs
from memdiag.cli.options.declare import option, repeatable
from memdiag.cli.options.exit_codes import exit_code
from memdiag.cli.options.gate import GateOptions, settle
from memdiag.cli.options.inputs import Inputs
from memdiag.cli.options.outputs import ReportOptions
from memdiag.cli.options.page import PageOptions
from memdiag.cli.output.ci_reports import write_reports
from memdiag.cli.output.judge import judged
from memdiag.cli.output.messages import complain_of_failures, say
from memdiag.cli.output.printing import show
from memdiag.errors import Exit, UsageError
from memdiag.values.findings import Diagnosis, RecordingFinding
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.values.measurements import Recording

USAGE = "[OPTIONS] [RUN]..."
Runs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN",
        help="Runs by name, last, last~1, ..., or files and patterns as for analyze.  "
        "[default: last]",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOptions:
    """The part of a run to show."""

    series: tuple[str, ...] = repeatable(
        "--series", "METRIC", "Show only this metric: rss, vram_bytes, tensors. Repeatable."
    )
    process: tuple[str, ...] = repeatable(
        "--process", "NAME", "Show only this process: main, rank 0, tree, or a pid. Repeatable."
    )
    from_step: float | None = option("--from-step", "N", "Judge only the run from step N on.")
    to_step: float | None = option("--to-step", "N", "Judge only the run up to step N.")
    output: Path | None = option(
        "--output",
        "FILE",
        "Write the report to FILE: .html, .png, .svg, .md, .json or .xml.",
        parse=Path,
        short="-o",
    )


# The option of `ReportOptions` for each ending of a file name.
_FIELDS = {
    ".html": "html",
    ".htm": "html",
    ".png": "png",
    ".svg": "svg",
    ".md": "markdown",
    ".json": "json_file",
    ".xml": "junitxml",
}


def report(part: PartOptions, files: ReportOptions, page: PageOptions, runs: Runs = None) -> None:
    """Show the report of a run again, that of the newest one without an argument; or write it to
    files.

    --series and --process show a part of the report: the verdicts are those of the whole run.
    --from-step and --to-step judge a part of the run. Exits with 0, or with 2 if a run cannot be
    read; memdiag analyze RUN exits with the verdict.
    """
    from memdiag.analysis.narrowing import between_steps, chosen
    from memdiag.analysis.readings import with_readings

    settled = settle(GateOptions())
    inputs = Inputs()
    sources = inputs.sources(runs or ["last"])
    files = _with_output(files, part.output)
    wanted = outputs.reports(files)
    outputs.require(files)
    outputs.check(wanted, inputs=outputs.of_sources(sources), force=files.force)
    shows_readings = outputs.shows_readings(files)

    def judge(recording: Recording) -> RecordingFinding:
        cut = between_steps(recording, part.from_step, part.to_step)
        found = chosen(judged(cut, settled), part.series, part.process)
        return with_readings(found, cut) if shows_readings else found

    found = inputs.findings(sources, judge)
    diagnosis = Diagnosis(recordings=tuple(found), failures=tuple(inputs.failures))
    code = exit_code(diagnosis, settled.failing)
    unwritten = write_reports(diagnosis, settled, files, code)
    if unwritten:
        raise unwritten[0]
    complain_of_failures(inputs.failures)
    for one in wanted:
        say(f"wrote {printable(str(one.path))}")
    if files.json:
        from memdiag.report.formats import json_documents

        sys.stdout.write(json_documents.text(json_documents.diagnosis(diagnosis, code)))
    elif not wanted:
        from memdiag.report.formats import terminal

        detail, why = page.detail, page.why
        show(
            lambda w, a: terminal.render(diagnosis, width=w, ascii_only=a, detail=detail, why=why),
            page,
        )
    raise typer.Exit(Exit.USAGE if inputs.failures else Exit.NO_LEAK)


def _with_output(files: ReportOptions, output: Path | None) -> ReportOptions:
    """The files to write, with that of `--output`. Raises UsageError."""
    if output is None:
        return files
    name = _FIELDS.get(output.suffix.lower())
    if name is None:
        raise UsageError(
            f"--output {printable(str(output))} is not a report",
            remedy=f"name it report.html; its ending may be {', '.join(_FIELDS)}",
        )
    if getattr(files, name) is not None:
        raise UsageError(f"two files of one kind: {printable(str(output))} is the second")
    chosen: Any = {name: output}
    return replace(files, **chosen)
