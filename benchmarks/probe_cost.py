"""What the probe costs a training: per optimizer step, as a share of a step, and at the start.

    python benchmarks/probe_cost.py [PAIRS]

Steps: one process with the probe in it, all meters on, where blocks of steps with and without the
hooks alternate, so that both see the same machine, memory and caches; CPU time of the training
thread. Its own time: the hooks called as torch calls them, nothing else. Starts: interleaved pairs
of processes, wall time. Every figure is a median, beside the interval that holds the middle half.
Fails where a bar is missed. On a machine that others keep busy the steps tell little.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memdiag.capture.channel import prepare

BLOCK = 10
OWN_BAR_US, RATIO_BAR, START_BAR_MS, IMPORT_BAR = 25.0, 1.005, 20.0, 1.05
# (name, width, batch, pairs of blocks): 21 modules each; a step takes about as long as its name.
SHAPES = (("1 ms", 32, 16, 200), ("5 ms", 128, 160, 100), ("50 ms", 256, 640, 20))


class Switch:
    """Takes our hooks out of torch, and puts them back."""

    def __init__(self, torch: Any) -> None:
        optimizer = sys.modules["torch.optim.optimizer"]
        self._torch = torch
        self._tables: list[dict[int, Any]] = [
            optimizer._global_optimizer_pre_hooks,  # type: ignore[attr-defined]
            optimizer._global_optimizer_post_hooks,  # type: ignore[attr-defined]
        ]
        self.hooks = [dict(table) for table in self._tables]
        self.backward = torch.autograd.backward

    def set(self, *, on: bool) -> None:
        for table, hooks in zip(self._tables, self.hooks, strict=True):
            table.clear()
            table.update(hooks if on else {})
        self._torch.autograd.backward = self.backward if on else self.backward.__wrapped__


def train(width: int, batch: int, pairs: int) -> None:
    """Print pairs of (with, without) CPU seconds of a step, and seconds of the hooks alone."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [m for _ in range(10) for m in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(batch, width)
    switch = Switch(torch)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    def block(*, on: bool) -> float:
        switch.set(on=on)
        return seconds_each(step, BLOCK)

    block(on=True), block(on=False)
    found = []
    for number in range(pairs):
        first = block(on=bool(number % 2))
        second = block(on=not number % 2)
        found.append((first, second) if number % 2 else (second, first))
    (before,), (after,) = (list(hooks.values()) for hooks in switch.hooks)
    graph = torch.zeros(1, requires_grad=True).sum()
    plain_backward = switch.backward.__wrapped__

    def with_hooks() -> None:
        switch.backward(graph, retain_graph=True)
        before(optimizer, (), {})
        after(optimizer, (), {})

    def without() -> None:
        plain_backward(graph, retain_graph=True)

    own = [seconds_each(with_hooks, 100) - seconds_each(without, 100) for _ in range(30)]
    print(json.dumps({"pairs": found, "own": own}))


def seconds_each(do: Callable[[], None], times: int) -> float:
    began_s = time.thread_time()
    for _ in range(times):
        do()
    return (time.thread_time() - began_s) / times


def steps(width: int, batch: int, pairs: int) -> dict[str, Any]:
    directory = Path(tempfile.mkdtemp())
    command = [sys.executable, __file__, "--train", str(width), str(batch), str(pairs)]
    environ = prepare(os.environ, directory)
    done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True)
    shutil.rmtree(directory)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


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
        found = steps(width, batch, blocks)
        pairs = found["pairs"]
        step_ms = statistics.median(without for _, without in pairs) * 1e3
        label = f"step of {name} (here {step_ms:.3g} ms)"
        if name == SHAPES[0][0]:
            own_us = [seconds * 1e6 for seconds in found["own"]]
            good.append(report("the probe's own time per step", own_us, "us", OWN_BAR_US))
        added_us = [(with_us - without) * 1e6 for with_us, without in pairs]
        report(f"{label}: added", added_us, "us", None)
        ratios = [with_us / without for with_us, without in pairs]
        good.append(
            report(f"{label}: ratio", ratios, "", None if name == SHAPES[0][0] else RATIO_BAR)
        )
    starts = pairs_of(start_seconds("pass"), 3 * count)
    added_ms = [(with_us - without) * 1e3 for with_us, without in starts]
    good.append(report("start of python: added", added_ms, "ms", START_BAR_MS))
    imports = pairs_of(start_seconds("import torch"), count)
    ratios = [with_us / without for with_us, without in imports]
    good.append(report("import torch: ratio", ratios, "", IMPORT_BAR))
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
