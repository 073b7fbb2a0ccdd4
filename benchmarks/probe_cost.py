"""What the probe costs a training: per optimizer step, as a share of a step, and at the start.

    python benchmarks/probe_cost.py [PAIRS]

Interleaved pairs of processes, with and without the probe, all meters on. A step's cost is CPU
time of the whole process (the probe's thread included): the median of blocks of 20 steps. Every
figure is the median over the pairs, beside the interval that holds the middle half of them.
Fails where a bar is missed.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from memdiag.capture.channel import prepare

BLOCK = 20
STEP_BAR_US, RATIO_BAR, START_BAR_MS, IMPORT_BAR = 25.0, 1.005, 20.0, 1.05
# (name, width, batch, blocks): 21 modules each; the step takes about as long as it is called.
SHAPES = (("1 ms", 32, 16, 40), ("5 ms", 128, 160, 20), ("50 ms", 256, 640, 6))


def train(width: int, batch: int, blocks: int) -> None:
    """Print the CPU seconds of a step, as measured inside."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [m for _ in range(10) for m in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(batch, width)

    def block() -> float:
        began_s = time.process_time()
        for _ in range(BLOCK):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        return (time.process_time() - began_s) / BLOCK

    block()
    print(statistics.median(block() for _ in range(blocks)))


def pairs_of(run: Callable[[dict[str, str]], float], count: int) -> list[tuple[float, float]]:
    """(with, without) for `count` pairs, the order within a pair changing."""
    found = []
    for number in range(count):
        directory = Path(tempfile.mkdtemp())
        watched, plain = prepare(os.environ, directory), dict(os.environ)
        if number % 2:
            with_us, without = run(watched), run(plain)
        else:
            without, with_us = run(plain), run(watched)
        found.append((with_us, without))
        shutil.rmtree(directory)
    return found


def step_seconds(width: int, batch: int, blocks: int) -> Callable[[dict[str, str]], float]:
    def run(environ: dict[str, str]) -> float:
        command = [sys.executable, __file__, "--train", str(width), str(batch), str(blocks)]
        done = subprocess.run(command, env=environ, capture_output=True, check=True)
        return float(done.stdout)

    return run


def start_seconds(code: str) -> Callable[[dict[str, str]], float]:
    def run(environ: dict[str, str]) -> float:
        began_s = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env=environ, check=True)
        return time.perf_counter() - began_s

    return run


def middle(values: list[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    low, median, high = statistics.quantiles(values, n=4)
    return low, median, high


def report(name: str, values: list[float], unit: str, bar: float | None) -> bool:
    low, median, high = middle(values)
    verdict = "" if bar is None else f"  bar {bar:g} {'met' if median <= bar else 'MISSED'}"
    print(f"{name:42} {median:8.4g} {unit:3} [{low:.4g}, {high:.4g}]{verdict}")
    return bar is None or median <= bar


def main() -> int:
    if sys.argv[1:2] == ["--train"]:
        train(*map(int, sys.argv[2:]))
        return 0
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    good = []
    for name, width, batch, blocks in SHAPES:
        pairs = pairs_of(step_seconds(width, batch, blocks), count)
        step_ms = statistics.median(without for _, without in pairs) * 1e3
        added = [(with_us - without) * 1e6 for with_us, without in pairs]
        ratios = [with_us / without for with_us, without in pairs]
        first = name == SHAPES[0][0]
        label = f"step of {name} (here {step_ms:.3g} ms)"
        good.append(report(f"{label}: added", added, "us", STEP_BAR_US if first else None))
        good.append(report(f"{label}: ratio", ratios, "", None if first else RATIO_BAR))
    starts = pairs_of(start_seconds("pass"), 3 * count)
    added_ms = [(with_us - without) * 1e3 for with_us, without in starts]
    good.append(report("start of python: added", added_ms, "ms", START_BAR_MS))
    imports = pairs_of(start_seconds("import torch"), count)
    ratios = [with_us / without for with_us, without in imports]
    good.append(report("import torch: ratio", ratios, "", IMPORT_BAR))
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
