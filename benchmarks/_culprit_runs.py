"""Runs a program of fixtures/programs/leaks under memdiag or another tool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from _culprit_truths import Truth, counting

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
INSIDE = HERE / "growth_inside"
PATIENCE_S, TO_END_S = 600.0, 30.0
MOST_READ = 3  # lines of another tool's list
PEER_STEPS = 400  # of other tools, which slow a program down manyfold
MEASURED_STEPS = 400
# A program that ends sooner, or for which memdiag wants a longer run, is run again with this many
# times the steps, and one that does not end with a part of them: how long they take depends on the
# machine.
LEAST_S, TIMES, PART = 15.0, (4, 12), 0.1
_PYTHON = sys.executable
Frames = Sequence[Sequence[Any]]  # (file, line), innermost first


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a tool said of a program. line: of the program's file, 0 for none. named: what is named
    in place of a line. culprits: how many. lists: the first lines of each list that another tool
    has, by its name. cpu_s: of all its processes."""

    program: str
    tool: str
    verdict: str = ""
    kind: str = ""
    line: int = 0
    how: str = ""
    holder: str = ""
    bytes_per_step: float | None = None
    culprits: int = 0
    named: str = ""
    lists: Mapping[str, Sequence[int]] = field(default_factory=dict)
    cpu_s: float = 0.0
    took_s: float = 0.0
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that has ended. output: what it wrote to both streams."""

    status: int
    output: str
    cpu_s: float
    took_s: float

    @property
    def complaint(self) -> str:
        """Why the command failed; "" if it succeeded."""
        last = " ".join(self.output.strip().splitlines()[-3:])[-300:]
        return f"status {self.status}: {last}" if self.status else ""


def run(tool: str, truth: Truth) -> Outcome:
    """Whatever goes wrong is in `error`."""
    with tempfile.TemporaryDirectory() as name:
        outcome = TOOLS[tool](truth, Path(name))
    return replace(outcome, program=truth.name, tool=tool)


def ended(command: Sequence[str], folder: Path, **environment: str) -> Ended:
    """Wait for a command; it gets SIGTERM when PATIENCE_S is over, which memdiag passes on, and is
    killed some time later."""
    began_s = time.monotonic()
    output = folder / "output.txt"
    with output.open("w") as stream:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=stream,
            stderr=stream,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        )
        timers = [
            threading.Timer(PATIENCE_S, process.terminate),
            threading.Timer(PATIENCE_S + TO_END_S, process.kill),
        ]
        for timer in timers:
            timer.start()
        _, status, used = os.wait4(process.pid, 0)
        for timer in timers:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(
        status=process.returncode,
        output=output.read_text(encoding="utf-8", errors="replace"),
        cpu_s=used.ru_utime + used.ru_stime,
        took_s=time.monotonic() - began_s,
    )


def alone(truth: Truth, folder: Path) -> Outcome:
    """Without any tool, for the cost."""
    end = ended([_PYTHON, str(truth.path)], folder)
    return outcome_of(end, error=end.complaint)


def memdiag(truth: Truth, folder: Path) -> Outcome:
    """`memdiag run --explain always`: the verdict, and the first culprit."""
    end, found = recorded(truth, folder, "--explain", "always")
    return by_cause(truth, end, found)


def auto(truth: Truth, folder: Path) -> Outcome:
    """`memdiag run` without an option: the verdict, and the first culprit."""
    end, found = recorded(truth, folder)
    return by_cause(truth, end, found)


def walks(truth: Truth, folder: Path) -> Outcome:
    """`memdiag run`: what its walks along the names say alone, without the lines that it followed
    and the allocations that it recorded.
    """
    end, found = recorded(truth, folder)
    if found:
        kept = folder / "run.meta.json"
        kept.write_text(json.dumps(of_walks(json.loads(kept.read_text("utf-8")))), "utf-8")
        report = folder / "of_walks.json"
        command = [_PYTHON, "-m", "memdiag", "analyze", "--quiet", "--json-file", str(report)]
        ended([*command, str(folder / "run.csv")], folder)
        found = only_recording(report)
    return by_cause(truth, end, found)


def of_walks(kept: dict[str, Any]) -> dict[str, Any]:
    """A recording's document without what lines that run and allocations have shown."""
    for process in kept.get("holders", ()):
        process.update(native=[], allocated=[], watched_steps=0, watched_s=0.0)
        for holder in process["holders"]:
            holder.update(lines=[line for line in holder["lines"] if not line["hits"]], makers=[])
    return kept


def recorded(truth: Truth, folder: Path, *options: str) -> tuple[Ended, dict[str, Any]]:
    """Run a program under `memdiag run`, for longer where that calls for it; what was found."""
    report = folder / "found.json"
    command = [_PYTHON, "-m", "memdiag", "run", "--quiet", *options, "--force"]
    command += ["--json-file", str(report), "--output", str(folder / "run.csv")]
    command += ["--", _PYTHON, str(truth.path)]
    end = ended(command, folder)
    if end.took_s >= PATIENCE_S:
        end = ended([*command, "--steps", str(round(PART * truth.steps))], folder)
    found = only_recording(report)
    for times in TIMES:
        if end.took_s < LEAST_S or (found and found["verdict"] == "inconclusive"):
            end = ended([*command, "--steps", str(times * truth.steps)], folder)
            found = only_recording(report)
    return end, found


def by_cause(truth: Truth, end: Ended, found: Mapping[str, Any]) -> Outcome:
    """The verdict, and the first culprit."""
    if not found:
        return outcome_of(end, error=end.complaint or "no report")
    cause = found["cause"] or {"kind": None, "culprits": []}
    first = cause["culprits"][0] if cause["culprits"] else {}
    of_program = Path(first.get("file") or "").name == truth.path.name
    return outcome_of(
        end,
        verdict=found["verdict"],
        kind=cause["kind"] or (found["leaking"] or {"kind": ""})["kind"],
        line=(first.get("line") or 0) if of_program else 0,
        how=str(first.get("how") or ""),
        holder=str(first.get("holder") or ""),
        bytes_per_step=first.get("bytes_per_step"),
        culprits=len(cause["culprits"]),
        named=f"{first.get('file')}:{first.get('line')}" if first and not of_program else "",
    )


def only_recording(report: Path) -> dict[str, Any]:
    """What was found in the only recording of a report; {} without a report."""
    if not report.exists():
        return {}
    found: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["recordings"]
    return found[0]


def memray(truth: Truth, folder: Path) -> Outcome:
    """What is in use at the end, and what is in use late and was not at 40% of the time."""
    recorded, found = folder / "memray.bin", folder / "named.json"
    command = [_PYTHON, "-m", "memray", "run", "-q", "--follow-fork", "-o", str(recorded)]
    command += [str(truth.path), "--steps", str(PEER_STEPS)]
    end = ended(command, folder)
    if end.status == 0:
        command = [_PYTHON, str(HERE / "_memray_diff.py"), str(found)]
        looked = ended([*command, *map(str, folder.glob("memray.bin*"))], folder)
        if looked.status:
            return outcome_of(end, error=looked.complaint)
    return by_stacks(truth, end, found)


def scalene(truth: Truth, folder: Path) -> Outcome:
    """The lines that it calls leaks, the most likely first, and those whose memory grew most."""
    profile = folder / "scalene.json"
    command = [_PYTHON, "-m", "scalene", "run", "--memory", "-o", str(profile), str(truth.path)]
    end = ended([*command, "---", "--steps", str(PEER_STEPS)], folder)
    if not profile.exists():
        return outcome_of(end, error=end.complaint or "no profile")
    files = json.loads(profile.read_text(encoding="utf-8")).get("files", {})
    own: dict[str, Any] = next(
        (part for name, part in files.items() if Path(name).name == truth.path.name), {}
    )
    leaks = {int(n): one["likelihood"] for n, one in (own.get("leaks") or {}).items()}
    grown = {one["lineno"]: one["n_growth_mb"] for one in own.get("lines", ())}
    return outcome_of(end, lists={"leaks": most(truth, leaks), "growth": most(truth, grown)})


def tracemalloc(truth: Truth, folder: Path) -> Outcome:
    """What grew most between two snapshots."""
    return by_stacks(truth, inside(truth, folder, "tracemalloc"), folder / "named.json")


def objgraph(truth: Truth, folder: Path) -> Outcome:
    """The types that grew most; it names no lines."""
    end = inside(truth, folder, "objgraph")
    found = folder / "named.json"
    if not found.exists():
        return outcome_of(end, error=end.complaint or "the steps did not come so far")
    return outcome_of(end, named=", ".join(json.loads(found.read_text())[:3]))


def by_stacks(truth: Truth, end: Ended, path: Path) -> Outcome:
    """The lines of the program that most bytes belong to. The innermost line of the program in a
    stack gets all bytes of that.
    """
    if not path.exists():
        return outcome_of(end, error=end.complaint or "no result")
    lists = {}
    for mode, stacks in json.loads(path.read_text(encoding="utf-8")).items():
        by_line: dict[int, float] = {}
        for stack, size in stacks:
            line = own_line(truth, stack)
            by_line[line] = by_line.get(line, 0) + size
        lists[mode] = most(truth, by_line)
    return outcome_of(end, lists=lists)


def most(truth: Truth, by_line: Mapping[int, float]) -> list[int]:
    """The first lines of a list that someone reads, without imports, which run once."""
    source = ("", *truth.path.read_text(encoding="utf-8").splitlines())
    order = sorted(by_line, key=lambda line: by_line[line], reverse=True)
    lines = [line for line in order if line and by_line[line] > 0]
    return [line for line in lines if not source[line].startswith(("import ", "from "))][:MOST_READ]


def own_line(truth: Truth, stack: Frames) -> int:
    return next((int(f[1]) for f in stack if Path(f[0]).name == truth.path.name), 0)


def inside(truth: Truth, folder: Path, does: str, steps: int = PEER_STEPS) -> Ended:
    """Run the program with its steps counted and what growth_inside does by that name."""
    program = folder / truth.path.name
    program.write_text(counting(truth.path.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "steps").write_bytes(bytes(8))
    places = os.pathsep.join([str(INSIDE), os.environ.get("PYTHONPATH", "")])
    return ended(
        [_PYTHON, str(program), "--steps", str(steps)],
        folder,
        PYTHONPATH=places,
        GROWTH_DOES=does,
        GROWTH_STEPS=str(steps),
        GROWTH_FOLDER=str(folder),
    )


def measured(truth: Truth) -> tuple[float, str]:
    """Bytes per step by which the process that grows most does grow, and a complaint or "".

    A straight line by least squares through the second half of the steps: what malloc and Python's
    own allocator have in use, without memdiag.
    """
    with tempfile.TemporaryDirectory() as name:
        end = inside(truth, Path(name), "read", max(MEASURED_STEPS, truth.steps))
        slopes = [slope_of(path.read_text()) for path in Path(name).glob("[0-9]*.txt")]
    return max(slopes, default=0.0), end.complaint


def slope_of(readings: str) -> float:
    lines = [line.split() for line in readings.splitlines() if line.count(" ") == 1]
    step, size = np.array([(int(a), int(b)) for a, b in lines], dtype=float).reshape(-1, 2).T
    late = step > step.max(initial=0) / 2
    if len(set(step[late])) < 10:
        return 0.0
    return float(np.polyfit(step[late], size[late], 1)[0])


def outcome_of(end: Ended, **fields: Any) -> Outcome:
    return Outcome(program="", tool="", cpu_s=end.cpu_s, took_s=end.took_s, **fields)


TOOLS: dict[str, Callable[[Truth, Path], Outcome]] = {
    "memdiag": memdiag,
    "auto": auto,
    "walks": walks,
    "alone": alone,
    "memray": memray,
    "scalene": scalene,
    "tracemalloc": tracemalloc,
    "objgraph": objgraph,
}
PEERS = ("memray", "scalene", "tracemalloc", "objgraph")


def of_tool(outcomes: Iterable[Outcome], tool: str) -> dict[str, Outcome]:
    return {outcome.program: outcome for outcome in outcomes if outcome.tool == tool}
