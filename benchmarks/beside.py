"""What watching costs a training, beside other tools on the same script in the same run.

    python benchmarks/beside.py [ROUNDS]

A 21-module MLP with steps of some 5 ms. In each round every tool runs once, in an order that
changes; the program itself takes the CPU time of its process over its steps, so that starts and
imports do not count. Overhead: CPU time with the tool over that without in the same round, less 1;
the median over the rounds beside the interval that holds all of them. Bar: memdiag's is at most a
tenth of that of the best tool that knows steps or allocations. A tool that is not installed is left
out (`pip install memray scalene memory-profiler`). On a machine that others keep busy even CPU time
varies by some percent from run to run, which is more than memdiag takes: `probe_cost.py` takes its
own time per step by itself.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = 400
ROUNDS = 5
PATIENCE_S = 60.0
BAR = 0.1
_PYTHON = sys.executable
_HOW = "MEMDIAG_BENCHMARK_TRAIN"
_SELF = str(Path(__file__).resolve())
# Tool -> (module that has to be there, whether it knows steps or allocations, what goes before the
# program, its arguments after it).
TOOLS: dict[str, tuple[str, bool, list[str]]] = {
    "nothing": ("torch", False, [_PYTHON]),
    "memdiag run": ("memdiag", True, [_PYTHON, "-m", "memdiag", "run", "-q", "--", _PYTHON]),
    "memray run": ("memray", True, [_PYTHON, "-m", "memray", "run", "-q", "-o", "memray.bin"]),
    "scalene": ("scalene", True, [_PYTHON, "-m", "scalene", "run", "-o", "scalene.json"]),
    "torch.profiler": ("torch", True, [_PYTHON]),
    "mprof": (
        "memory_profiler",
        False,
        [_PYTHON, "-m", "mprof", "run", "-o", "mprof.dat", _PYTHON],
    ),
}


def train(*, profiled: bool) -> None:
    """Print CPU seconds per step."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(*[m for _ in range(10) for m in (nn.Linear(128, 128), nn.ReLU())])
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(160, 128)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    def seconds() -> float:
        for _ in range(20):
            step()
        began_s = time.process_time()
        for _ in range(STEPS):
            step()
        return (time.process_time() - began_s) / STEPS

    if profiled:
        with torch.profiler.profile(profile_memory=True):
            each_s = seconds()
    else:
        each_s = seconds()
    print("\n" + json.dumps({"step_s": each_s}), flush=True)


def cost_s(tool: str) -> float | None:
    """CPU seconds of a step under a tool; None where the program could not tell."""
    # By the environment: each tool has its own way with a program's arguments.
    environ = {**os.environ, _HOW: "profiled" if tool == "torch.profiler" else "plain"}
    with tempfile.TemporaryDirectory() as directory:
        said = Path(directory) / "said.txt"
        # A file and a group of its own: scalene leaves a process behind that would hold a pipe.
        with said.open("w") as out:
            tool_itself = subprocess.Popen(
                [*TOOLS[tool][2], _SELF],
                env=environ,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            with contextlib.suppress(subprocess.TimeoutExpired):
                tool_itself.wait(PATIENCE_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(tool_itself.pid, signal.SIGKILL)
            tool_itself.wait()
        text = said.read_text(errors="replace")
    for line in text.splitlines():
        if line.startswith('{"step_s"'):
            return float(json.loads(line)["step_s"])
    print(f"{tool} is left out: under it the program did not end within {PATIENCE_S:g} s")
    return None


def main() -> int:
    how = os.environ.get(_HOW)
    if how is not None:
        train(profiled=how == "profiled")
        return 0
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    there = [name for name in TOOLS if importlib.util.find_spec(TOOLS[name][0]) is not None]
    found: dict[str, list[float]] = {name: [] for name in there}
    for number in range(rounds):
        at = number % len(there)
        for name in [*there[at:], *there[:at]]:
            step_s = cost_s(name) if name in found else None
            if step_s is None:
                found.pop(name, None)
            else:
                found[name].append(step_s)
    plain_ms = statistics.median(found["nothing"]) * 1e3
    print(f"a step takes {plain_ms:.2f} ms of CPU time; {rounds} rounds of {STEPS} steps")
    print("\n| tool | knows steps or allocations | overhead | of all rounds |\n|---|---|---|---|")
    overheads = {}
    for name in [name for name in there[1:] if name in found]:
        ratios = [one / plain - 1 for one, plain in zip(found[name], found["nothing"], strict=True)]
        overheads[name] = statistics.median(ratios)
        knows = "yes" if TOOLS[name][1] else "no"
        spread = f"{min(ratios):+.1%} to {max(ratios):+.1%}"
        print(f"| {name} | {knows} | {overheads[name]:+.1%} | {spread} |")
    return judged(overheads)


def judged(overheads: dict[str, float]) -> int:
    """Hold memdiag's overhead against the best of the others; the exit status."""
    others = {n: o for n, o in overheads.items() if TOOLS[n][1] and n != "memdiag run"}
    best = min(others, key=others.__getitem__)
    part = max(overheads["memdiag run"], 0.0) / others[best]
    told = "met" if part <= BAR else "MISSED"
    print(f"\nmemdiag's overhead is {part:.2f} of that of {best}: bar {BAR:g} {told}")
    return 0 if part <= BAR else 1


if __name__ == "__main__":
    raise SystemExit(main())
