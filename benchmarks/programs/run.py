"""Is the verdict right on programs of many styles, each time, and what leaks named?

    python benchmarks/programs/run.py [--runs 5] [--seconds 55] [--jobs 1] [--load]
                                      [--results FILE] [--resume] [--again] [--keep FOLDER]
                                      [--write]
                                      [--remark TEXT] [--style STYLE] [PROGRAM ...]

Runs each program of `cases/` under `memdiag run`, so many times, and holds what memdiag says
against truths.toml: the verdict, the growth per step (per second where the program has no steps
that memdiag knows of), the kind of memory (`leaking` in the JSON) and the process. WARMUP and
STABLE count as the same: neither is a leak. A program whose packages are not installed is left out,
and that is told.

Figures, and their bars: verdicts that are wrong (none), that are left open (INCONCLUSIVE; at most
5 %), programs of the same verdict in all runs (95 %), and of the leaks that were found those whose
rate is within 15 % of the truth (95 %) and whose kind and process are right (95 %). `--load` keeps
each core busy with a process of its own meanwhile.

Each run is appended to the results as one line of JSON. `--resume` takes from there what has been
run already, with the same number of seconds and the same load; without it they begin anew.
`--keep` leaves each recording and its report in a folder. `--again` runs nothing: after a rule was
changed it judges the recordings in that folder, for the runs that the results hold. `--write` puts
all of it into docs/programs.md, with a remark about the machine. Not a part of `make bench`: 5 runs
of all take seven hours, one at a time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from judge import Outcome, Row, judged, judged_again
from truths import Truth, all_truths

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENT = ROOT / "docs" / "programs.md"
RESULTS = ROOT / "bench-output" / "programs.jsonl"
HEAD = """# Verdict, rate and kind on {count} real programs

Made by `make bench-programs`: each program of `benchmarks/programs/cases` runs {runs} for
{seconds:g} s under `memdiag run`, {jobs} at a time on {cores} cores{load}. What each of them does
is in `benchmarks/programs/truths.toml`; `benchmarks/programs/check_truths.py` measures that without
memdiag. Rates are medians of the runs that found the leak, in bytes per step, or
per second where memdiag sees no steps. WARMUP and STABLE count as the same.
{remark}
"""
BY_STYLE = ("style", "runs", "wrong", "left open", "leaks found", "rate right", "kind right")
COLUMNS = ("program", "style", "verdict", "growth", "true", "what grows", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A share with its bar; text is ready to print."""

    text: str
    ok: bool


def main() -> int:
    options = parsed()
    truths = {truth.name: truth for truth in options.truths}
    lacking = {name: truth.missing() for name, truth in truths.items() if truth.missing()}
    wanted = [
        (truths[n], r) for r in range(1, options.runs + 1) for n in truths if n not in lacking
    ]
    outcomes = earlier(options) if options.resume or options.again else []
    known = {(o.program, o.run) for o in outcomes}
    outcomes = [o for o in outcomes if (o.program, o.run) in {(t.name, r) for t, r in wanted}]
    todo = [(truth, run) for truth, run in wanted if (truth.name, run) not in known]
    if options.again:
        with ThreadPoolExecutor(options.jobs) as pool:
            again = pool.map(lambda o: judged_again(o, truths[o.program], options.keep), outcomes)
            outcomes, todo = list(again), []
    for folder in (options.results.parent, options.keep):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    with (
        options.results.open("a" if options.resume or options.again else "w") as kept,
        busy_cores(options.load),
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        going = [
            pool.submit(judged, truth, run, options.seconds, options.keep) for truth, run in todo
        ]
        for ended in as_completed(going):
            outcome = ended.result()
            setting = {"seconds": options.seconds, "load": options.load}
            kept.write(json.dumps({**outcome.as_json(), **setting}) + "\n")
            kept.flush()
            outcomes.append(outcome)
            print(told(outcome), flush=True)
    rows = [row for truth in truths.values() if (row := row_of(truth, outcomes)).outcomes]
    figures = all_figures(rows)
    document = "\n".join(lines(rows, lacking, figures))
    print("\n" + document)
    if options.write:
        DOCUMENT.write_text(head(options, rows) + document + "\n", encoding="utf-8")
    return 0 if all(figure.ok for figure in figures) else 1


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each program")
    parser.add_argument("--seconds", type=float, default=55.0)
    parser.add_argument("--jobs", type=int, default=1, help="this many at a time")
    parser.add_argument("--load", action="store_true", help="keep each core busy meanwhile")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--resume", action="store_true", help="continue with what --results holds")
    parser.add_argument("--again", action="store_true", help="judge the recordings in --keep")
    parser.add_argument("--keep", type=lambda path: Path(path).resolve(), help="recordings' folder")
    parser.add_argument("--write", action="store_true", help="into docs/programs.md")
    parser.add_argument("--remark", default="", help="a paragraph for docs/programs.md")
    parser.add_argument("--style", action="append", default=[], help="these styles only")
    parser.add_argument("program", nargs="*", help="all without any")
    options = parser.parse_args()
    if options.again and options.keep is None:
        parser.error("--again needs --keep, the folder with the recordings")
    truths = all_truths()
    if unknown := [name for name in options.program if name not in truths]:
        parser.error(f"no program {unknown[0]!r}; there are: {', '.join(truths)}")
    styles = {truth.style for truth in truths.values()}
    if unknown := [style for style in options.style if style not in styles]:
        parser.error(f"no style {unknown[0]!r}; there are: {', '.join(sorted(styles))}")
    chosen = [truths[name] for name in options.program or truths]
    options.truths = [t for t in chosen if not options.style or t.style in options.style]
    return options


def earlier(options: argparse.Namespace) -> list[Outcome]:
    """What the results hold of the same setting; the last line may have been cut off."""
    outcomes = []
    text = options.results.read_text(encoding="utf-8") if options.results.exists() else ""
    if text and not text.endswith("\n"):
        text = text[: text.rfind("\n") + 1]
        options.results.write_text(text, encoding="utf-8")
    for line in text.splitlines():
        fields = json.loads(line)
        if (fields.pop("seconds"), fields.pop("load")) == (options.seconds, options.load):
            outcomes.append(Outcome(**fields))
    return outcomes


@contextlib.contextmanager
def busy_cores(wanted: bool) -> Iterator[None]:
    spin = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(spin) for _ in range(os.cpu_count() or 1)] if wanted else []
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def row_of(truth: Truth, outcomes: Sequence[Outcome]) -> Row:
    return Row(truth=truth, outcomes=tuple(o for o in outcomes if o.program == truth.name))


def told(outcome: Outcome) -> str:
    """A line while the benchmark runs."""
    rate = "" if outcome.rate is None else f" {outcome.rate:,.0f} per {outcome.axis}"
    true = f" (true {outcome.true:,.0f})" if outcome.true else ""
    why = outcome.error or f"{outcome.reason}, {outcome.metric} of {outcome.process}"
    return f"{outcome.program} {outcome.run}: {outcome.verdict}{rate}{true} {outcome.kind}; {why}"


def all_figures(rows: Sequence[Row]) -> list[Figure]:
    runs = sum(len(row.outcomes) for row in rows)
    found = sum(len(row.found) for row in rows)
    count = {
        what: sum(row.count(what=what) for row in rows)
        for what in ("wrong", "open", "rate", "kind")
    }
    same = sum(row.same for row in rows)
    return [
        figure("wrong", count["wrong"], runs, most=0.0),
        figure("open", count["open"], runs, most=0.05),
        figure("same verdict in all runs", same, len(rows), least=0.95),
        figure("rate of found leaks within 15 %", count["rate"], found, least=0.95),
        figure("kind and process of found leaks", count["kind"], found, least=0.95),
    ]


def figure(name: str, part: int, of: int, *, most: float = 1.0, least: float = 0.0) -> Figure:
    share = part / of if of else least
    bar = f"at least {least:.0%}" if least else f"at most {most:.0%}"
    ok = least <= share <= most
    percent = f"{share:.1%}; " if of else ""
    text = f"* {name}: {part} of {of} ({percent}bar: {bar}){'' if ok else ' MISSED'}"
    return Figure(text=text, ok=ok)


def lines(rows: Sequence[Row], lacking: dict[str, str], figures: Sequence[Figure]) -> Iterator[str]:
    yield from (figure.text for figure in figures)
    yield ""
    yield f"| {' | '.join(BY_STYLE)} |"
    yield "|---" + "|--:" * (len(BY_STYLE) - 1) + "|"
    for style in dict.fromkeys(row.truth.style for row in rows):
        yield f"| {style} | {' | '.join(map(str, counts(rows, style)))} |"
    yield ""
    yield f"| {' | '.join(COLUMNS)} |".replace("|  |", "| |")
    yield "|---" * len(COLUMNS) + "|"
    for row in rows:
        yield f"| {' | '.join(row.cells())} |"
    if lacking:
        yield ""
        yield "Left out, because a package is not installed: " + "; ".join(
            f"{name} ({package})" for name, package in lacking.items()
        )


def counts(rows: Sequence[Row], style: str) -> Iterator[int]:
    """The columns of BY_STYLE after the first."""
    own = [row for row in rows if row.truth.style == style]
    yield sum(len(row.outcomes) for row in own)
    yield from (sum(row.count(what=what) for row in own) for what in ("wrong", "open"))
    yield sum(len(row.found) for row in own)
    yield from (sum(row.count(what=what) for row in own) for what in ("rate", "kind"))


def head(options: argparse.Namespace, rows: Sequence[Row]) -> str:
    load = ", each of which is kept busy by another process" if options.load else ""
    runs = sorted({len(row.outcomes) for row in rows})
    times = "once" if runs == [1] else f"{' to '.join(map(str, runs[:1] + runs[1:][-1:]))} times"
    return HEAD.format(
        count=len(rows),
        runs=times,
        seconds=options.seconds,
        jobs=options.jobs,
        cores=os.cpu_count(),
        load=load,
        remark=f"\n{options.remark}\n" if options.remark else "",
    )


if __name__ == "__main__":
    sys.exit(main())
