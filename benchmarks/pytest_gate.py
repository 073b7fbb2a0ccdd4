"""Does the pytest plugin pass bodies that are healthy but noisy, and fail those that leak?

    python benchmarks/pytest_gate.py [--seed S] [--healthy N] [--leaking N] [--others N]

Healthy bodies fill caches (of 10 to 2,000 entries, with values of 100 bytes to 20 KB), churn blocks
of random sizes so that arenas grow and stay full of holes, leave cycles to the collector, gather
records and flush them, or grow a buffer to its final size. Leaking bodies do one of these, or
nothing, and lose 1 KB, 50 KB or 5 MB per call, as one block or as many small objects.

Bars: at most 1 failure in 1000 healthy bodies; of each size of leak 99 % fail. The same bodies are
given to psleak (its defaults, fewer calls for 5 MB) and to pytest-memray (limit_leaks, 100 calls,
512 bytes per call), where they are installed, with the time that each takes.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from memdiag.integrations.repeat_until_settled import Repetition, Terms
from memdiag.values.verdict import Verdict

LEAKS = {"1 KB": 1024, "50 KB": 50 * 1024, "5 MB": 5 * 2**20}
BARS = {"healthy": 0.001, "leaking": 0.99}
Body = Callable[[], None]


def quiet(rng: random.Random) -> Body:
    return lambda: None


def cache(rng: random.Random) -> Body:
    """A cache that fills, with keys one after the other or at random, then replaces."""
    entries = int(10 ** rng.uniform(1, 3.3))
    largest = int(10 ** rng.uniform(2, 4.3))
    span = rng.choice([0, 2 * entries])
    held: OrderedDict[int, bytes] = OrderedDict()
    calls = 0

    def body() -> None:
        nonlocal calls
        calls += 1
        key = rng.randrange(span) if span else calls
        if key not in held:
            held[key] = bytes(rng.randint(1, largest))
        if len(held) > entries:
            held.popitem(last=False)

    return body


def arenas(rng: random.Random) -> Body:
    """A bounded pool of blocks of random sizes: the heap has holes and grows for a while."""
    slots = rng.randint(20, 300)
    pool: list[object] = [None] * slots
    largest = int(10 ** rng.uniform(2, 5))

    def body() -> None:
        for _ in range(rng.randint(1, 20)):
            pool[rng.randrange(slots)] = bytearray(rng.randint(1, largest))
        [str(n) * 20 for n in range(rng.randint(0, 3000))]

    return body


class Node:
    """Part of a cycle."""

    def __init__(self, size: int) -> None:
        self.me = self
        self.payload = bytes(size)


def cycles(rng: random.Random) -> Body:
    size = int(10 ** rng.uniform(2, 5))

    def body() -> None:
        for _ in range(rng.randint(1, 10)):
            Node(size)

    return body


def flushed(rng: random.Random) -> Body:
    """Records are gathered and dropped together, as loggers and metrics do."""
    every = int(10 ** rng.uniform(1, 2.7))
    size = int(10 ** rng.uniform(2, 4))
    records: list[bytes] = []

    def body() -> None:
        records.append(bytes(size))
        if len(records) >= every:
            records.clear()

    return body


def buffer(rng: random.Random) -> Body:
    """A buffer that grows to what the largest input needs."""
    largest = int(10 ** rng.uniform(4, 7))
    held = bytearray()

    def body() -> None:
        wanted = int(largest * rng.random() ** 2)
        if wanted > len(held):
            held.extend(bytes(wanted - len(held)))

    return body


HEALTHY = (cache, arenas, cycles, flushed, buffer)


def leaking(rng: random.Random, size: int, keep: list[object]) -> Body:
    """A healthy body that loses `size` bytes with each call."""
    healthy = rng.choice((quiet, *HEALTHY))(rng)
    # Small objects cost much more than they hold; ten bytes of digits take about 60.
    small = size <= 2**16 and rng.random() < 0.5

    def body() -> None:
        healthy()
        keep.append([f"{n:010d}" for n in range(size // 60)] if small else b"x" * size)

    return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`fails(body)`: whether the tool fails a test that does this."""

    name: str
    fails: Callable[[Body], bool]


def by_memdiag(body: Body) -> bool:
    repetition = Repetition(Terms())
    for _ in repetition:
        body()
    assert repetition.settled is not None
    return repetition.settled.verdict is Verdict.LEAK


def by_psleak(body: Body, times: int = 200) -> bool:
    """times: calls in the first of its tries, of which each is longer (200 is its default)."""
    import psleak

    case = psleak.MemoryLeakTestCase("execute")
    try:
        case.execute(body, times=times)
    except psleak.Error:
        return True
    return False


MEMRAY_TEST = """
import random, sys
import pytest
sys.path.insert(0, {here!r})
import pytest_gate

@pytest.mark.limit_leaks("{limit} B")
def test_body():
    for _ in range(100):
        BODY()

KEEP = []
RNG = random.Random({seed})
BODY = {body}
"""


def memray_fails(body: str, rng: random.Random, _: list[object]) -> bool:
    """pytest-memray in a pytest of its own, as it must be. `body`: an expression of the test."""
    text = MEMRAY_TEST.format(
        here=str(Path(__file__).parent), limit=100 * 512, seed=rng.randrange(2**32), body=body
    )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "test_body.py"
        path.write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", "--memray", "-p", "no:cacheprovider"]
        command += [str(path)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"pytest-memray does not run:\n{ended.stdout}{ended.stderr}")
    return ended.returncode == 1


def is_there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How many of so many bodies failed, and what a body took."""

    failed: int
    bodies: int
    median_s: float

    def __str__(self) -> str:
        return f"{self.failed:4} of {self.bodies:4} fail, {self.median_s:5.2f} s each"


def score(fails: Callable[[random.Random, list[object]], bool], bodies: int, seed: str) -> Score:
    failed, took = 0, []
    for number in range(bodies):
        keep: list[object] = []
        began_s = time.perf_counter()
        failed += fails(random.Random(f"{seed} {number}"), keep)
        took.append(time.perf_counter() - began_s)
    return Score(failed=failed, bodies=bodies, median_s=statistics.median(took))


def on_healthy(tool: Tool, bodies: int, seed: int) -> Score:
    return score(lambda rng, _: tool.fails(rng.choice(HEALTHY)(rng)), bodies, f"healthy {seed}")


def on_leaks(tool: Tool, size: int, bodies: int, seed: int) -> Score:
    return score(
        lambda rng, keep: tool.fails(leaking(rng, size, keep)), bodies, f"leak {size} {seed}"
    )


def compare_memray(bodies: int, seed: int) -> None:
    """The same kinds of bodies; each in a process of its own."""
    if not is_there("pytest_memray"):
        print("pytest-memray is not installed: pip install 'memdiag[bench]'")
        return
    healthy = "RNG.choice(pytest_gate.HEALTHY)(RNG)"
    leak = "pytest_gate.leaking(RNG, {size}, KEEP)"
    rows = {"healthy": healthy} | {name: leak.format(size=size) for name, size in LEAKS.items()}
    for name, body in rows.items():
        found = score(
            partial(memray_fails, body),
            bodies,
            f"{name} {seed}",
        )
        print(f"pytest-memray  {name:8} {found}")


def memdiag_passes(options: argparse.Namespace) -> bool:
    """memdiag's own figures, held against the bars."""
    memdiag = Tool(name="memdiag", fails=by_memdiag)
    healthy = on_healthy(memdiag, options.healthy, options.seed)
    print(f"memdiag        healthy  {healthy}", flush=True)
    good = healthy.failed <= BARS["healthy"] * max(healthy.bodies, 1000)
    for name, size in LEAKS.items():
        found = on_leaks(memdiag, size, options.leaking, options.seed)
        print(f"memdiag        {name:8} {found}", flush=True)
        good &= found.failed >= BARS["leaking"] * found.bodies
    return good


def compare_psleak(bodies: int, seed: int) -> None:
    """psleak, which runs only with Python's own allocator switched off."""
    if not is_there("psleak"):
        print("psleak is not installed: pip install 'memdiag[bench]'")
        return
    if os.environ.get("PYTHONMALLOC") != "malloc":
        command = [sys.executable, __file__, "--only", "psleak"]
        command += ["--others", str(bodies), "--seed", str(seed)]
        subprocess.run(command, check=True, env=os.environ | {"PYTHONMALLOC": "malloc"})
        return
    psleak = Tool(name="psleak", fails=by_psleak)
    print(f"psleak         healthy  {on_healthy(psleak, bodies, seed)}", flush=True)
    for name, size in LEAKS.items():
        times = 200 if size < 2**20 else 4  # else it would need 10 GB
        tool = Tool(name="psleak", fails=partial(by_psleak, times=times))
        print(f"psleak         {name:8} {on_leaks(tool, size, bodies, seed)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--healthy", type=int, default=1000)
    parser.add_argument("--leaking", type=int, default=200)
    parser.add_argument("--others", type=int, default=30)
    parser.add_argument("--only", choices=["memdiag", "psleak", "memray"])
    options = parser.parse_args()
    good = options.only not in {None, "memdiag"} or memdiag_passes(options)
    if options.only in {None, "psleak"}:
        compare_psleak(options.others, options.seed)
    if options.only in {None, "memray"}:
        compare_memray(options.others, options.seed)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
