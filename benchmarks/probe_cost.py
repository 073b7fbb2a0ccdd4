"""What the probe costs a training: per optimizer step, as a share of a step, and at the start.

    python benchmarks/probe_cost.py [PAIRS]

Steps: all of the probe's hooks are timed where they are, inside of a training of 21 modules that
has pushed them out of the processor's caches (CPU time of the training thread; what the timing
itself takes is measured by hooks that do nothing, in every tenth block, and taken off). That is
what most steps pay, and those that are measured. Looks at all objects and walks of the program's
names are shown apart: the first are on credit, so that a short run knows something, and of a long
run they take fixed shares, which the ratio includes. The intervals are of the mean (95 %, from
blocks of steps drawn anew). As a check blocks of steps with and without the hooks alternate, which
shows what is lost in caches too.
Starts: interleaved pairs of processes, wall time, median and the interval of the middle half.
Fails where a bar is missed. A machine that others keep busy has colder caches.
"""

from __future__ import annotations

import compileall
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BLOCK = 10
OWN_BAR_US, RATIO_BAR, START_BAR_MS, IMPORT_BAR = 25.0, 1.005, 20.0, 1.05
# (name, width, batch, CPU seconds): 21 modules each; a step takes about as long as its name.
SHAPES = (("1 ms", 32, 16, 20), ("5 ms", 128, 160, 40), ("50 ms", 256, 640, 40))
# A block of steps that took more than this for each had a look at all objects in it, of 20 ms, or a
# walk of the program's names, of 4 ms.
LOOK_US = 300.0
_clock = time.thread_time_ns


class Switch:
    """Takes our hooks out of torch, puts them back, and times what they take."""

    def __init__(self, torch: Any) -> None:
        optimizer = sys.modules["torch.optim.optimizer"]
        self._torch = torch
        self._tables: list[dict[int, Any]] = [
            optimizer._global_optimizer_pre_hooks,
            optimizer._global_optimizer_post_hooks,
        ]
        self._hooks = [dict(table) for table in self._tables]
        # Ours, or torch's own: while there is nothing to hear in it we are not there.
        self._backward = torch.autograd.backward
        self._plain = getattr(self._backward, "__wrapped__", self._backward)
        self._inside_ns = 0
        self.spent_ns = 0

    def set(self, *, on: bool) -> None:
        """Ours or none, untimed."""
        self._put([hooks if on else {} for hooks in self._hooks])
        self._let_through(self._plain)
        self._torch.autograd.backward = self._backward if on else self._plain

    def time(self, *, ours: bool) -> None:
        """Ours or some that do nothing, timed."""
        nothing = {key: lambda *_: None for hooks in self._hooks for key in hooks}
        self._put(
            [
                {key: self._timed(hook if ours else nothing[key]) for key, hook in hooks.items()}
                for hooks in self._hooks
            ]
        )
        self._let_through(self._plain_timed)
        is_there = ours and self._backward is not self._plain
        self._torch.autograd.backward = self._around(
            self._backward if is_there else self._plain_timed
        )

    def _put(self, hooks: list[dict[int, Any]]) -> None:
        for table, ones in zip(self._tables, hooks, strict=True):
            table.clear()
            table.update(ones)

    def _let_through(self, backward: Any) -> None:
        """What our wrapper of `backward` calls."""
        if self._backward is self._plain:
            return
        names = self._backward.__code__.co_freevars
        self._backward.__closure__[names.index("original")].cell_contents = backward

    def _timed(self, hook: Callable[..., None]) -> Callable[..., None]:
        def timed(*args: Any) -> None:
            began_ns = _clock()
            hook(*args)
            self.spent_ns += _clock() - began_ns

        return timed

    def _plain_timed(self, *args: Any, **kwargs: Any) -> None:
        began_ns = _clock()
        self._plain(*args, **kwargs)
        self._inside_ns = _clock() - began_ns

    def _around(self, backward: Callable[..., None]) -> Callable[..., None]:
        def timed(*args: Any, **kwargs: Any) -> None:
            began_ns = _clock()
            backward(*args, **kwargs)
            self.spent_ns += _clock() - began_ns - self._inside_ns

        return timed


def train(width: int, batch: int, for_s: int) -> None:
    """Print what blocks of steps took: with us and without, and the hooks' part of ours."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [m for _ in range(10) for m in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(batch, width)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    def block() -> float:
        began_ns = _clock()
        for _ in range(BLOCK):
            step()
        return (_clock() - began_ns) / BLOCK * 1e-9

    def spent(*, ours: bool) -> tuple[float, float]:
        switch.time(ours=ours)
        switch.spent_ns = 0
        took_s = block()
        return took_s, switch.spent_ns / BLOCK * 1e-9

    found: dict[str, list[Any]] = {"ours": [], "nothing": [], "pairs": []}
    block()  # our first steps, of which we learn what there is to hear
    switch = Switch(torch)
    while time.thread_time() < for_s:
        found["ours"] += [spent(ours=True) for _ in range(9)]
        found["nothing"].append(spent(ours=False))
    while time.thread_time() < 1.5 * for_s:
        pair = {}
        for on in (True, False) if len(found["pairs"]) % 2 else (False, True):
            switch.set(on=on)
            pair[on] = block()
        found["pairs"].append((pair[True], pair[False]))
    print(json.dumps(found))


def steps(width: int, batch: int, for_s: int) -> dict[str, Any]:
    from memdiag.capture.probelink.channel import prepare

    directory = Path(tempfile.mkdtemp())
    command = [sys.executable, __file__, "--train", str(width), str(batch), str(for_s)]
    environ = prepare(os.environ, directory)
    done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True)
    shutil.rmtree(directory)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def pairs_of(run: Callable[[dict[str, str]], float], count: int) -> list[tuple[float, float]]:
    """(with, without) for `count` pairs, the order within a pair changing."""
    from memdiag.capture.probelink.channel import prepare

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


def interval_of_mean(values: list[float]) -> tuple[float, float, float]:
    """Lower end, mean, upper end of the 95 % interval (bootstrap by percentiles, Efron 1979)."""
    draw = random.Random(0)
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(1000))
    return means[25], statistics.fmean(values), means[975]


def report(name: str, figures: tuple[float, float, float], unit: str, bar: float | None) -> bool:
    low, value, high = figures
    verdict = "" if bar is None else f"  bar {bar:g} {'met' if value <= bar else 'MISSED'}"
    print(f"{name:46} {value:8.4g} {unit:3} [{low:.4g}, {high:.4g}]{verdict}", flush=True)
    return bar is None or value <= bar


def report_steps(name: str, found: dict[str, Any]) -> bool:
    """The figures of one shape; False where it misses a bar."""
    from memdiag.probe import holder_sampler, tensor_sampler

    share = tensor_sampler.SHARE + holder_sampler.SHARE

    timing_s = statistics.fmean(spent for _, spent in found["nothing"])
    step_s = statistics.fmean(took for took, _ in found["nothing"]) - timing_s
    every_us = [(spent - timing_s) * 1e6 for _, spent in found["ours"]]
    own_us = [us for us in every_us if us < LOOK_US]
    label = f"step of {name} (here {step_s * 1e3:.3g} ms)"
    looks_ms = [us * BLOCK / 1e3 for us in every_us if us >= LOOK_US]
    print(f"{label}: {len(looks_ms)} looks took {sum(looks_ms):.0f} ms, on credit")
    report(f"{label}: own time of a block, median", middle(own_us), "us", None)
    mean = interval_of_mean(own_us)
    is_short = name == SHAPES[0][0]
    good = report(f"{label}: own time, mean", mean, "us", OWN_BAR_US if is_short else None)
    low, value, high = (1 + us * 1e-6 / step_s + share for us in mean)
    ratio_bar = None if is_short else RATIO_BAR
    good = report(f"{label}: ratio", (low, value, high), "", ratio_bar) and good
    ratios = [with_us / without for with_us, without in found["pairs"]]
    report(f"{label}: ratio of blocks, median", middle(ratios), "", None)
    return good


def main() -> int:
    if sys.argv[1:2] == ["--train"]:
        train(*map(int, sys.argv[2:]))
        return 0
    from memdiag import probe  # not in what is measured: a program that has it is waited for

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    # As an installation does: what changed in a checkout since would be compiled at every start.
    compileall.compile_dir(Path(probe.__file__).parent, quiet=1)
    good = [report_steps(name, steps(*shape)) for name, *shape in SHAPES]
    starts = pairs_of(start_seconds("pass"), 3 * count)
    added_ms = [(with_us - without) * 1e3 for with_us, without in starts]
    good.append(report("start of python: added", middle(added_ms), "ms", START_BAR_MS))
    imports = pairs_of(start_seconds("import torch"), count)
    ratios = [with_us / without for with_us, without in imports]
    good.append(report("import torch: ratio", middle(ratios), "", IMPORT_BAR))
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
