"""Does memdiag name the line that leaks, and who holds the memory? And do other tools?

    python benchmarks/culprits.py [--only PROGRAM ...]
                                  [--set first|held_back|unseen|unseen_2|...|unseen_25]
                                  [--tools memdiag,auto,walks,alone,memray,scalene,tracemalloc,
                                           objgraph]
                                  [--packages DIR] [--jobs 1] [--results FILE] [--resume] [--write]
    python benchmarks/culprits.py --measure [--only PROGRAM ...]

Runs the programs of `fixtures/programs/leaks` under `memdiag run --explain always` and holds what
it says against truths.toml and the markers in the programs. Bars, over the programs that leak: kind
right in 95%, line right in 90% (of the store, or of the creation where nothing in the program
stores), holder right in 90%, bytes per step within 15%. Of the others no culprit may be named.
Each set has figures of its own; docs/culprits.md says what was known of it when it was first run.

`auto` is `memdiag run` without an option, which spends less on it: the same figures.

`walks` is `memdiag run` without an option, and what its walks along the names say alone: what lines
that run and recorded allocations have shown is left out of the recording (the lines of places with
it: the source is not searched for them a second time). Bar: holder right in 80%.

Other tools run on the programs that leak, for 400 steps, each at its best: a line is right for them
too if it is the one that makes what is kept, and if it is among the first three of any of their
lists of lines of the program. memray (--follow-fork): what is in use at
the end, and the growth between 40% and 95% of the run. tracemalloc: the growth between two
snapshots, at 40% and 95% of the steps. Of both all bytes of a stack count for the innermost line of
the program in it. scalene: lines that it calls leaks, and those whose memory grew most. objgraph
names types.

`--packages` is a folder with packages that are not installed (`pip install --target DIR ...`): the
tools, and what some programs need. A program whose packages are missing is left out, a tool that
does not run has its reason in the table; both are said. `--resume` takes from the results what has
been run already. `--write` puts the tables into docs/culprits.md. `--measure` measures the bytes
per step without memdiag, from inside, into bytes_per_step.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from _culprit_runs import PEERS, ROOT, TOOLS, Outcome, measured, of_tool, run
from _culprit_truths import MEASURED, SETS, Truth, all_truths

DOCUMENT = ROOT / "docs" / "culprits.md"
RESULTS = ROOT / "bench-output" / "culprits.jsonl"
PEER_TABLE = "<!-- other tools: make bench-culprits -->\n"
TABLES = "<!-- tables: make bench-culprits -->\n"
BYTES_BAR = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What memdiag said of a program, with what is true."""

    truth: Truth
    outcome: Outcome

    @property
    def found(self) -> bool:
        return self.outcome.verdict == "leak"

    @property
    def counts(self) -> bool:
        return self.found or not self.truth.is_garbage

    @property
    def kind_right(self) -> bool:
        return self.outcome.kind in self.truth.kind

    @property
    def line_right(self) -> bool:
        return self.outcome.line in self.truth.lines

    @property
    def holder_right(self) -> bool:
        return self.truth.holder_named(self.outcome.holder)

    @property
    def bytes_known(self) -> bool:
        return bool(self.truth.bytes_per_step) and self.line_right

    @property
    def bytes_right(self) -> bool:
        said, true = self.outcome.bytes_per_step or 0.0, self.truth.bytes_per_step or math.inf
        return abs(said / true - 1) <= BYTES_BAR

    @property
    def standing(self) -> str:
        """ok, or what is not."""
        if self.outcome.error:
            return self.outcome.error
        if not self.truth.leaks:
            return "NAMED" if self.outcome.culprits else "ok"
        if not self.counts:
            return "ok, garbage"
        parts = {
            "verdict": self.found,
            "kind": self.kind_right,
            "line": self.line_right,
            "holder": self.holder_right,
            "bytes": self.bytes_right or not self.bytes_known,
        }
        return ", ".join(part for part, right in parts.items() if not right) or "ok"


def main() -> int:
    options = parsed()
    truths = [truth for truth in options.truths if not truth.missing()]
    lacking = {t.name: t.missing() for t in options.truths if t.missing()}
    if options.measure:
        return measure([truth for truth in truths if truth.leaks], options.jobs)
    wanted = [
        (tool, truth)
        for truth in truths
        for tool in options.tools
        if truth.leaks or tool in ("memdiag", "auto")
    ]
    known = earlier(options.results) if options.resume else []
    names = {truth.name for truth in truths}
    outcomes = [o for o in known if o.program in names and o.tool in options.tools]
    done = {(o.tool, o.program) for o in outcomes}
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with (
        options.results.open("a" if options.resume else "w", encoding="utf-8") as kept,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        todo = [(tool, t) for tool, t in wanted if (tool, t.name) not in done]
        going = [pool.submit(run, tool, truth) for tool, truth in todo]
        for job in as_completed(going):
            outcome = job.result()
            kept.write(json.dumps(outcome.as_json()) + "\n")
            kept.flush()
            outcomes.append(outcome)
            print(described(outcome), flush=True)
    others = list(other_figures(truths, outcomes))
    tables = {PEER_TABLE: "\n".join(peers(truths, outcomes))}
    if "memdiag" in options.tools and not tables[PEER_TABLE]:
        tables[TABLES] = "\n".join(document(truths, outcomes, lacking))
    for marker, text in tables.items():
        if text:
            print("\n" + text)
            write(marker, text) if options.write else None
    if TABLES not in tables:
        print("\n" + "\n".join(text for text, _ in others))
    all_figures = [*figures(judged(truths, outcomes)), *others]
    return 0 if all(right for _, right in all_figures) else 1


def write(marker: str, text: str) -> None:
    """Write the text after a marker in the documentation, up to the next marker."""
    before, _, after = DOCUMENT.read_text(encoding="utf-8").partition(marker)
    rest = after[after.find(TABLES) :] if TABLES in after else ""
    DOCUMENT.write_text(f"{before}{marker}\n{text}\n" + (f"\n{rest}" if rest else ""), "utf-8")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], help="these programs")
    parser.add_argument("--set", choices=SETS, help="the programs of this set")
    parser.add_argument("--tools", default=",".join(TOOLS), help="with commas between")
    parser.add_argument("--packages", type=Path, help="folder of further packages")
    parser.add_argument("--jobs", type=int, default=1, help="this many at a time")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--resume", action="store_true", help="continue with what --results holds")
    parser.add_argument("--write", action="store_true", help="into docs/culprits.md")
    parser.add_argument("--measure", action="store_true", help="bytes per step, without memdiag")
    options = parser.parse_args()
    if options.packages:
        folder = str(options.packages.resolve())
        sys.path.append(folder)
        os.environ["PYTHONPATH"] = os.pathsep.join([os.environ.get("PYTHONPATH", ""), folder])
    options.tools = options.tools.split(",")
    truths = all_truths()
    unknown = [*(set(options.only) - set(truths)), *(set(options.tools) - set(TOOLS))]
    if unknown:
        parser.error(f"no {unknown[0]!r}; there are: {', '.join([*TOOLS, *truths])}")
    chosen = [truths[name] for name in options.only] or list(truths.values())
    options.truths = [t for t in chosen if options.set in {None, t.set}]
    return options


def measure(truths: Sequence[Truth], jobs: int) -> int:
    """Write what was measured after each program."""
    known = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(measured, truths)
        for truth, (growth, complaint) in zip(truths, results, strict=True):
            print(f"{truth.name}: {growth:,.0f} {complaint}", flush=True)
            failed += bool(complaint)
            if not complaint:
                known[truth.name] = round(growth)
                text = json.dumps(dict(sorted(known.items())), indent=1)
                MEASURED.write_text(text + "\n", encoding="utf-8")
    return 1 if failed else 0


def earlier(path: Path) -> list[Outcome]:
    """What the results hold; the last line may have been cut off."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [Outcome(**json.loads(line)) for line in whole.splitlines()]


def described(outcome: Outcome) -> str:
    """A line while the benchmark runs."""
    what = outcome.error or outcome.holder or outcome.named
    said = f"{outcome.verdict} {outcome.kind} line {outcome.line} {outcome.how}".strip()
    return f"{outcome.tool} {outcome.program}: {said}; {what} ({outcome.took_s:.0f} s)"


def judged(
    truths: Sequence[Truth], outcomes: Sequence[Outcome], tool: str = "memdiag"
) -> list[Judged]:
    said = of_tool(outcomes, tool)
    return [Judged(truth=t, outcome=said[t.name]) for t in truths if t.name in said]


def figures(rows: Sequence[Judged]) -> Iterator[tuple[str, bool]]:
    """Lines of text, and whether each bar was met."""
    for name in SETS:
        leaks = [r for r in rows if r.truth.leaks and r.truth.set == name and r.counts]
        if leaks:
            yield f"Set `{name}`, {len(leaks)} programs that leak:\n", True
            yield figure("LEAK", leaks, lambda r: r.found, 0.0)
            yield figure("kind right", leaks, lambda r: r.kind_right, 0.95)
            yield figure("line right", leaks, lambda r: r.line_right, 0.90)
            yield figure("holder right", leaks, lambda r: r.holder_right, 0.90)
            known = [r for r in leaks if r.bytes_known]
            yield figure("bytes per step within 15%", known, lambda r: r.bytes_right, 0.90)
            yield "", True
    healthy = [r for r in rows if not r.truth.leaks]
    named = sum(r.outcome.culprits > 0 for r in healthy)
    yield f"* a culprit named on a program that does not leak: {named} of {len(healthy)}", not named


def other_figures(
    truths: Sequence[Truth], outcomes: Sequence[Outcome]
) -> Iterator[tuple[str, bool]]:
    """The same without an option, and for what the walks say alone; nothing where not run."""
    if by_default := judged(truths, outcomes, "auto"):
        yield "Without an option (`memdiag run`):\n", True
        yield from figures(by_default)
    walked = judged(truths, outcomes, "walks")
    if leaks := [row for row in walked if row.truth.leaks and row.counts]:
        yield f"From the walks alone, {len(leaks)} programs that leak:\n", True
        yield figure("holder right", leaks, lambda r: r.holder_right, 0.80)


def figure(
    name: str, rows: Sequence[Judged], right: Callable[[Judged], bool], bar: float
) -> tuple[str, bool]:
    count = sum(map(right, rows))
    met = not rows or count / len(rows) >= bar
    share = f" ({count / len(rows):.0%}" if rows else " ("
    bar_text = f"; bar: {bar:.0%}" if bar else ""
    return f"* {name}: {count} of {len(rows)}{share}{bar_text}){'' if met else ' MISSED'}", met


def document(
    truths: Sequence[Truth], outcomes: Sequence[Outcome], lacking: dict[str, str]
) -> Iterator[str]:
    rows = judged(truths, outcomes)
    if len(rows) < len(truths):
        yield f"Not run as a whole: {len(rows)} of {len(truths)} programs.\n"
    yield from (text for text, _ in figures(rows))
    if others := list(other_figures(truths, outcomes)):
        yield ""
        yield from (text for text, _ in others)
    yield from costs(outcomes)
    yield ""
    yield "| program | set | verdict | kind | line | holder | bytes per step | true | |"
    yield "|---" * 9 + "|"
    for row in rows:
        yield f"| {' | '.join(cells(row))} |"
    if lacking:
        yield ""
        yield "Left out, because a package is not installed: " + "; ".join(
            f"{name} ({package})" for name, package in lacking.items()
        )


def costs(outcomes: Sequence[Outcome]) -> Iterator[str]:
    alone = of_tool(outcomes, "alone")
    ratios = [
        one.cpu_s / alone[name].cpu_s
        for name, one in of_tool(outcomes, "memdiag").items()
        if name in alone and not one.error and not alone[name].error
    ]
    if ratios:
        yield (
            f"* CPU time of everything, report included, over that of the program alone: "
            f"{statistics.median(ratios):.2f} (median of {len(ratios)}), {max(ratios):.2f} at most"
        )


def cells(row: Judged) -> tuple[str, ...]:
    one, truth = row.outcome, row.truth
    true = truth.bytes_per_step if truth.leaks else None
    return (
        truth.name,
        truth.set,
        one.verdict,
        one.kind.replace("_", " "),
        str(one.line) if one.line else one.named,
        one.holder.replace("|", "\\|"),
        f"{one.bytes_per_step:,.0f}" if one.bytes_per_step else "",
        f"{true:,.0f}" if true else "",
        row.standing.replace("|", "\\|"),
    )


def peers(truths: Sequence[Truth], outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Who names the right line: of the store, or of what makes it. Nothing without other tools.

    Only programs that each tool has run.
    """
    tools = [tool for tool in PEERS if of_tool(outcomes, tool)]
    if not tools:
        return
    columns = ["memdiag", *tools]
    said = {tool: of_tool(outcomes, tool) for tool in columns}
    yield f"| names the right line | {' | '.join(columns)} |"
    yield "|---" * (1 + len(columns)) + "|"
    leaks = [t for t in truths if t.leaks and all(t.name in said[tool] for tool in columns)]
    for truth in leaks:
        yield f"| {truth.name} | {' | '.join(peer_cell(truth, said[c]) for c in columns)} |"
    for name, is_right in (("all", _names), ("the first line keeps the memory", _names_first)):
        sums = [sum(is_right(t, said[tool]) for t in leaks) for tool in columns]
        yield f"| {name} | {' | '.join(f'{count} of {len(leaks)}' for count in sums)} |"


def _names(truth: Truth, said: dict[str, Outcome]) -> bool:
    return peer_cell(truth, said).startswith("yes")


def _names_first(truth: Truth, said: dict[str, Outcome]) -> bool:
    """Return True if the line that keeps the memory is the first of any list."""
    one = said[truth.name]
    first = [one.line, *(lines[0] for lines in one.lists.values() if lines)]
    return not one.error and any(line in truth.lines for line in first)


def peer_cell(truth: Truth, said: dict[str, Outcome]) -> str:
    if truth.name not in said:
        return ""
    one = said[truth.name]
    if one.error:
        return "did not run: " + one.error.replace("|", "\\|")[-80:]
    lists = {"": [one.line]} if one.line else one.lists
    right = truth.lines if one.line else truth.stored | truth.made
    places = [
        (lines.index(line) + 1, line, mode)
        for mode, lines in lists.items()
        for line in lines
        if line in right
    ]
    if places:
        at, line, mode = min(places)
        what = ["yes", *(["made"] if line not in truth.stored else []), *([mode] if mode else [])]
        return ", ".join([*what, *([f"no. {at}"] if at > 1 else [])])
    named = "; ".join(
        f"{mode} {', '.join(map(str, of))}".strip() for mode, of in lists.items() if of
    )
    return f"no: {named or one.named or 'nothing'}"


if __name__ == "__main__":
    sys.exit(main())
