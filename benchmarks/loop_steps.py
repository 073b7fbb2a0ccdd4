"""Overhead and benefit of counting the iterations of a program's loop.

    python benchmarks/loop_steps.py cost PYTHON [PAIRS]
    python benchmarks/loop_steps.py leak PYTHON [SECONDS]

PYTHON is 3.8 or later, for `leak` with numpy. `cost`: CPU time of one jump back whose loop is
counted, recorded as a step and disabled (3.12 and later), of one sample of the stacks, and of
programs with and without the counting (pairs of processes, in changing order; median and the middle
half).
`leak`: a job of 14 ms steps with batches of random size and a pool that is emptied every 50 steps
leaks 16,000 B per step, its twin nothing; both are recorded at once by `memdiag run`. Fails if the
first is not a LEAK or the second is one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = {
    "steps of 1 ms in Python": "for _ in range(4000):\n        sum(i * i for i in range(12000))",
    "hot loops and calls": (
        "for i in range(3000):\n        for j in range(1000):\n            f(i, j)"
    ),
}
PROGRAM = """
import sys, time, numpy
def f(a, b):
    return a * b + a
def run():
    {body}
began = time.thread_time()
run()
print(time.thread_time() - began)
"""
INSIDE = """
import json, sys, tempfile, time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

probe = Path(sys.argv[1])
spec = spec_from_file_location(
    "_memdiag_probe", probe / "__init__.py", submodule_search_locations=[str(probe)]
)
sys.modules["_memdiag_probe"] = package = module_from_spec(spec)
spec.loader.exec_module(package)
from _memdiag_probe import loop_events, loop_positions, loop_steps, loops
from _memdiag_probe.session import Session

N = 400_000

def spin(n):
    for _ in range(n):
        pass

def took(n=N):
    best = 1e9
    for _ in range(5):
        began = time.thread_time()
        spin(n)
        best = min(best, time.thread_time() - began)
    return best / n

def down(depth):
    return sample() if depth == 0 else down(depth - 1)

def sample():
    times = []
    for _ in range(200):
        began = time.thread_time()
        events.sample()
        times.append(time.thread_time() - began)
    return sorted(times)[len(times) // 2]

positions = loop_positions.open_positions()
if positions is not None:
    events, loop_positions.get_ident = positions, lambda: 0  # this thread as well
    print(json.dumps([down(30)]))
    raise SystemExit

plain = took()
loops.HOT_S = 0.0  # counted however short they are
events = loop_events.open_tool()
steps = loop_steps.LoopSteps(Session(tempfile.mkdtemp()), time.monotonic(), lambda now_s: False)
from _thread import get_ident
events._watch(spin.__code__, 0, get_ident())
counted = took()
(loop,) = [loop for loop in events.loops.values() if loop.code is spin.__code__]
loop.on_iteration = steps._record
recorded = took()
loop.on_iteration, loops.HOT_S = None, 1e9
spin(100)
disabled = took()
loop_events.get_ident = lambda: 0  # this thread as well
print(json.dumps([plain, counted, recorded, disabled, down(30)]))
"""
JOB = """
import sys, time
import numpy as np
rng, pool, kept = np.random.default_rng(0), [], []
def step(n, leaks):
    x = rng.standard_normal((int(rng.integers(100, 400)), 200))
    for _ in range(3):
        x = np.tanh(x @ rng.standard_normal((200, 200)))
    pool.append(np.zeros(int(rng.integers(1000, 4000))))
    if n % 50 == 0:
        pool.clear()
    if leaks:
        kept.append(np.ones(2000))
def train(leaks, seconds):
    until, n = time.monotonic() + seconds, 0
    while (now := time.monotonic()) < until:
        n += 1
        step(n, leaks)
        time.sleep(max(0.0, now + 0.014 - time.monotonic()))
train(sys.argv[1] == "leaks", float(sys.argv[2]))
"""


def environ(directory: Path, *, on: bool) -> dict[str, str]:
    """The environment with the probe, and a module named numpy."""
    from memdiag.capture.probelink.channel import prepare

    (directory / "numpy.py").write_text("ndarray = int\n")
    channel = directory / "channel"
    channel.mkdir(mode=0o700, exist_ok=True)
    variables = {**os.environ, "PYTHONPATH": str(directory), "MEMDIAG_LOOP_STEPS": str(int(on))}
    return prepare(variables, channel)


def cost(python: str, pairs: int) -> int:
    probe = str(ROOT / "memdiag" / "probe")
    done = subprocess.run(
        [python, "-c", INSIDE, probe], check=True, stdout=subprocess.PIPE, text=True
    )
    *jumps, sample_time = json.loads(done.stdout)
    for name, value in zip(("counted", "recorded as a step", "disabled"), jumps[1:], strict=False):
        print(f"jump back, {name:16} {(value - jumps[0]) * 1e6:6.2f} us")
    print(f"sample of a stack of 30 frames {sample_time * 1e6:6.0f} us")
    for name, body in PROGRAMS.items():
        ratios = []
        with tempfile.TemporaryDirectory() as directory:
            for number in range(pairs):
                took = {}
                for on in (True, False) if number % 2 else (False, True):
                    command = [python, "-c", PROGRAM.format(body=body)]
                    variables = environ(Path(directory), on=on)
                    found = subprocess.run(
                        command, env=variables, check=True, stdout=subprocess.PIPE, text=True
                    )
                    took[on] = float(found.stdout)
                ratios.append(took[True] / took[False])
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"{name:28} x{middle:.3f} [{low:.3f}, {high:.3f}] of {pairs} pairs", flush=True)
    return 0


def leak(python: str, seconds: float) -> int:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "job.py").write_text(JOB)
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
        memdiag, job = [sys.executable, "-m", "memdiag", "run"], [python, "job.py"]
        started = {
            kind: subprocess.Popen(
                [*memdiag, "--json-file", f"{kind}.json", "--", *job, kind, str(seconds)],
                cwd=directory,
                env=variables,
                stderr=subprocess.DEVNULL,
            )
            for kind in ("leaks", "steady")
        }
        right = True
        for kind, process in started.items():
            process.wait()
            document = json.loads((Path(directory) / f"{kind}.json").read_text())
            right = report(kind, document) and right
    return 0 if right else 1


def report(kind: str, document: dict[str, Any]) -> bool:
    verdict = document["verdict"]
    print(f"{kind}: {verdict}")
    for recording in document["recordings"]:
        print("", *recording["notes"], sep="\n    ")
    return bool(verdict == "leak") == (kind == "leaks")


def main() -> int:
    what, python, *more = sys.argv[1:]
    if what == "cost":
        return cost(python, int(more[0]) if more else 7)
    return leak(python, float(more[0]) if more else 60.0)


if __name__ == "__main__":
    raise SystemExit(main())
