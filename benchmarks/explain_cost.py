"""What a window of lines costs a program: how much slower its steps are, how long it lasts, and how
much more memory the program takes at its peak.

    python benchmarks/explain_cost.py [--steps-s S ...] [--kinds KIND ...] [PYTHON ...]

Programs that leak, with steps of three kinds: lines of the program only, calls of a library's
functions only, and a training of 12 layers (where torch is installed). A step is compared with the
median of the steps outside of the window; what has leaked meanwhile does not count as memory. Bars:
a step takes at most 8 times as long, the window at most 30 s more than its steps take otherwise,
and the peak of memory is at most 10% higher. Fails where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from memdiag.capture.probelink.channel import prepare
from memdiag.probe import ring_format

PROGRAM = Path(__file__).resolve().parents[1] / "fixtures" / "programs" / "leaking_steps.py"
SLOWER_BAR, WINDOW_BAR_S, MEMORY_BAR = 8.0, 30.0, 0.10
LEAK_BYTES = 100_000
KINDS = ("lines", "calls", "training")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """followed: steps in the window. slower: their median and their largest, in steps outside.
    more_s: what they took beyond that. memory: part by which the peak rose beyond the leak."""

    followed: int
    slower: tuple[float, float]
    more_s: float
    memory: float

    @property
    def is_met(self) -> bool:
        return (
            self.slower[1] <= SLOWER_BAR
            and self.more_s <= WINDOW_BAR_S
            and self.memory <= MEMORY_BAR
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    parser.add_argument("--steps-s", nargs="+", type=float, default=[0.02, 1.0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    options = parser.parse_args()
    missed = 0
    print("| Python | step | seconds | followed | slower (worst) | s more | memory |")
    print("|---" * 7 + "|")
    for python in options.pythons:
        version = output(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
        for kind in options.kinds:
            if kind == "training" and not has_torch(python):
                continue
            for step_s in options.steps_s:
                cost = measured(python, kind, step_s)
                missed += not cost.is_met
                median, worst = cost.slower
                print(
                    f"| {version} | {kind} | {step_s:g} | {cost.followed}"
                    f" | {median:.2f} ({worst:.2f}) | {cost.more_s:.2f} | {cost.memory:+.1%}"
                    f" |{'' if cost.is_met else ' MISSED'}",
                    flush=True,
                )
    return 1 if missed else 0


def measured(python: str, kind: str, step_s: float) -> Cost:
    """Run the program until its window is over."""
    with tempfile.TemporaryDirectory() as name:
        channel = Path(name)
        env = prepare({**os.environ, ring_format.EXPLAIN_VARIABLE: "always"}, channel)
        env["PYTHONPATH"] = os.pathsep.join([env["PYTHONPATH"], str(pretended(channel, python))])
        rows = json.loads(output(python, str(PROGRAM), kind, str(step_s), env=env))
    followed = [took_s for took_s, is_followed, _ in rows if is_followed]
    usual_s = statistics.median(took_s for took_s, is_followed, _ in rows[5:] if not is_followed)
    if not followed:
        return Cost(followed=0, slower=(0.0, 0.0), more_s=0.0, memory=0.0)
    first = next(i for i, row in enumerate(rows) if row[1])
    last = max(i for i, row in enumerate(rows) if row[1])
    leaked = (last - first + 1) * LEAK_BYTES
    before, after = rows[first - 1][2], rows[last][2]
    return Cost(
        followed=len(followed),
        slower=(statistics.median(followed) / usual_s, max(followed) / usual_s),
        more_s=sum(took_s - usual_s for took_s in followed),
        memory=(after - before - leaked) / before,
    )


def pretended(folder: Path, python: str) -> Path:
    """A folder with a module named numpy, where there is none: such programs are measured."""
    found = subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False)
    if found.returncode:
        (folder / "numpy.py").write_text("ndarray = int\n")
    return folder


def has_torch(python: str) -> bool:
    found = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
    return found.returncode == 0


def output(*command: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        raise SystemExit(f"{shutil.which(command[0])}: status {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
