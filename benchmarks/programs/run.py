"""Is the verdict right on 22 real trainings, within a minute each, and what leaks named?

    python benchmarks/programs/run.py [--seconds 55] [--jobs 1] [--write] [CASE ...]

Runs each case of `cases.py` under `memdiag run`, and prints verdict, rate beside the true one, and
the kind of memory that memdiag names (`leaking` in its JSON), with the process where that is not
the main one. Bars: every verdict right, every rate within 15 %, every kind right. A warm-up that is
called stable counts as right, and the other way round: neither is a leak. Not a part of `make
bench`: the whole takes 25 minutes, half of that with two at a time. `--write` puts all of it into
docs/programs.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CASES = HERE / "cases.py"
DOCUMENT = HERE.parent.parent / "docs" / "programs.md"
RATE_BAR = 0.15
CALM = frozenset({"stable", "warmup"})
HEAD = """# Verdict, rate and kind on 22 real trainings

Made by `make bench-programs`: each program of `benchmarks/programs/cases.py` runs for {seconds:g} s
under `memdiag run`, {jobs} at a time on {cores} cores. Bars: every verdict right, every rate within
15 %, every kind of memory named.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a case does. bytes_per_step: 0 where it does not leak; process: "" for the main one."""

    bytes_per_step: float = 0.0
    kind: str = ""
    process: str = ""


# Tensors are 4 bytes per value. What surrounds one takes 357 bytes of malloc (mallinfo2 over 20,000
# kept `torch.empty`, torch 2.13), and some 40 of Python's own allocator (estimated).
_AROUND = 400
TRUTHS = {
    "stable_mlp": Truth(),
    "stable_cnn": Truth(),
    "loss_items": Truth(),
    "evaluation_spikes": Truth(),
    "sawtooth_of_cycles": Truth(),
    "checkpoint_spikes": Truth(),
    "growing_batch": Truth(),
    "workers_prefetch": Truth(),
    "cache_fills": Truth(),
    "replay_buffer": Truth(),
    "varied_lengths": Truth(),
    "features_of_keys": Truth(),
    "history": Truth(bytes_per_step=200 * 64 * 4 + _AROUND, kind="tensors"),
    "small_dict": Truth(bytes_per_step=256 * 4 + _AROUND, kind="tensors"),
    "hook_activations": Truth(bytes_per_step=512 * 64 * 4 + _AROUND, kind="tensors"),
    "graph_of_losses": Truth(bytes_per_step=8192 * 4 + 2 * _AROUND, kind="graph"),
    "numpy_metrics": Truth(bytes_per_step=5000 * 8, kind="native"),
    "native": Truth(bytes_per_step=50_000, kind="native"),
    "cycles_without_collector": Truth(bytes_per_step=16_384 * 4 + _AROUND, kind="tensors"),
    "worker": Truth(bytes_per_step=8 * 4096, kind="native", process="DataLoader worker 0"),
    "evaluations": Truth(bytes_per_step=15 / 20 * (32 * 64 * 4 + _AROUND), kind="tensors"),
    "python_objects": Truth(bytes_per_step=40 * (184 + 56 + 32), kind="python_objects"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came out of a case, ready to print."""

    cells: tuple[str, ...]
    wrong: tuple[str, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=55.0)
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time")
    parser.add_argument("--write", action="store_true", help="into docs/programs.md")
    parser.add_argument("case", nargs="*", help="all without any")
    options = parser.parse_args()
    unknown = [name for name in options.case if name not in TRUTHS]
    if unknown:
        parser.error(f"no case {unknown[0]!r}; there are: {', '.join(TRUTHS)}")
    names = options.case or list(TRUTHS)
    lines = [
        "| program | verdict | bytes per step | true | what grows | |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    right = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda name: judge(name, options.seconds), names):
            told = "ok" if not row.wrong else "WRONG: " + ", ".join(row.wrong)
            lines.append(f"| {' | '.join(row.cells)} | {told} |")
            print(lines[-1], flush=True)
            right += not row.wrong
    lines += ["", f"{right} of {len(names)} right in verdict, rate and kind."]
    print("\n".join(lines[-2:]))
    if options.write:
        head = HEAD.format(seconds=options.seconds, jobs=options.jobs, cores=os.cpu_count())
        DOCUMENT.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    return 0 if right == len(names) else 1


def judge(name: str, seconds: float) -> Row:
    """Run a case and hold what memdiag says against the truth."""
    truth = TRUTHS[name]
    found = recorded(name, seconds)
    verdict = found["verdict"]
    if not truth.kind:
        wrong = () if verdict in CALM else ("verdict",)
        return Row(cells=(name, verdict, "", "", ""), wrong=wrong)
    decisive = found["series"][found["decided_by"]]
    growth = decisive.get("growth_per_x")
    near = growth is not None and abs(growth["value"] / truth.bytes_per_step - 1) <= RATE_BAR
    leaking = found["leaking"] or {"kind": "not told", "share": None}
    process = "" if decisive["process"] in {"main", "tree"} else decisive["process"]
    checks = {
        "verdict": verdict == "leak",
        "rate": near,
        "kind": (leaking["kind"], process) == (truth.kind, truth.process),
    }
    share = "" if leaking["share"] is None else f" ({leaking['share']:.0%})"
    cells = (
        name,
        verdict,
        "-" if growth is None else f"{growth['value']:,.0f}",
        f"{truth.bytes_per_step:,.0f}",
        leaking["kind"].replace("_", " ") + share + (f" in {process}" if process else ""),
    )
    return Row(cells=cells, wrong=tuple(what for what, ok in checks.items() if not ok))


def recorded(name: str, seconds: float) -> dict[str, Any]:
    """The finding on one run."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "found.json"
        command = [sys.executable, "-m", "memdiag", "run", "--quiet", "--json-file", str(report)]
        command += ["--", sys.executable, str(CASES), name, str(seconds)]
        ended = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True)
        if not report.exists():
            sys.exit(f"{name}: memdiag made no report\n{ended.stderr}")
        (found,) = json.loads(report.read_text())["recordings"]
    return dict(found)


if __name__ == "__main__":
    sys.exit(main())
