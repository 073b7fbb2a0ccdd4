"""`memdiag analyze` of many recordings: judged by workers, printed as a summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import fields

from memdiag.cli import lazy_imports
from memdiag.cli.options import outputs
from memdiag.cli.options.exit_codes import of_counts
from memdiag.cli.options.fleet import FleetOptions
from memdiag.cli.options.gate import Gate, GateOptions
from memdiag.cli.options.inputs import InputOptions, Inputs, named_source
from memdiag.cli.options.outputs import ReportOptions
from memdiag.cli.options.page import PageOptions
from memdiag.cli.output.messages import say
from memdiag.cli.output.printing import show_summary
from memdiag.errors import UsageError

STDIN = "-"
# Options of the gate that are for many recordings, too.
_OF_MANY = frozenset({"limit", "gpu_limit", "fail_on", "inconclusive"})
_SHOWN_EVERY_S = 0.5


def analyze_many(
    files: Sequence[str],
    fleet: FleetOptions,
    reading: InputOptions,
    gate: Gate,
    report: ReportOptions,
    page: PageOptions,
) -> int:
    """Judge the files, print the summary, and return the exit code. Raises MemdiagError."""
    if STDIN in files:
        raise UsageError(
            "standard input cannot be judged by workers", remedy="memdiag analyze - alone"
        )
    options, labels = Inputs(reading).options, fleet.labels
    files = [named_source(one) for one in files]
    lazy_imports.reading()
    from dataclasses import replace

    from memdiag.fleet import engines, run
    from memdiag.fleet.judge_file import How
    from memdiag.fleet.paths import paths
    from memdiag.fleet.results_file import ResultsFile
    from memdiag.fleet.summarize import summarize
    from memdiag.report.formats import fleet_text

    engine = engines.named(fleet.engine or "local", address=fleet.engine_address, jobs=fleet.jobs)
    how = How(
        options=replace(options, progress=None),
        limits=gate.limits(),
        planned_x=reading.planned_x,
        with_points=labels not in {(), ("job",)},  # those of jobs are kept anyway
    )
    with ResultsFile(fleet.results) as results:
        progress = _Progress()
        run.judge_into(results, paths(files), engine, how, progress.reached)
        progress.done()
        summary = summarize(results, labels)
    leaks = summary.groups.get("leak", 0)  # of jobs, none of whose recordings may be one
    counts = {**summary.counts, "leak": summary.counts.get("leak", 0) + leaks}
    code = of_counts(counts, gate.failing)
    show_summary(summary, code, fleet_text, page, as_json=report.json)
    return code


def refuse(fleet: FleetOptions, gate: GateOptions, report: ReportOptions, settled: Gate) -> None:
    """Raise UsageError for options that are for single reports."""
    why = next(
        name
        for name, given in (
            ("--results", fleet.results),
            ("--engine", fleet.engine),
            ("--jobs", fleet.jobs),
            ("--group-by", fleet.group_by),
            ("many recordings", True),
        )
        if given
    )
    named = [named.where for named in outputs.reports(report)]
    named += [
        one.metadata["name"]
        for one in fields(gate)
        if one.name not in _OF_MANY and getattr(gate, one.name)
    ]
    if named:
        raise UsageError(
            f"{named[0]} cannot be used with {why}",
            remedy="analyze single files with it: memdiag analyze FILE",
        )
    if settled.budgets:
        say(f"budgets are not applied with {why}")


class _Progress:
    """How many recordings are judged, on a terminal."""

    def __init__(self) -> None:
        self._began_s = self._drawn_s = time.monotonic()
        self._is_shown = False

    def reached(self, number: int) -> None:
        """So many results have arrived."""
        now_s = time.monotonic()
        if now_s - self._drawn_s < _SHOWN_EVERY_S or not sys.stderr.isatty():
            return
        self._drawn_s, self._is_shown = now_s, True
        rate = number / (now_s - self._began_s)
        print(f"\r{number:,} recordings, {rate:,.0f} per second ", end="", file=sys.stderr)

    def done(self) -> None:
        """Remove the line."""
        if self._is_shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
