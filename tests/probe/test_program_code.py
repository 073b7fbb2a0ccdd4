"""Which generators and coroutines wait for which, also while some of them run."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import gc, sys, types
sys.path.insert(0, {root!r})
from memdiag.probe import program_code
awaited = program_code._awaited
NAMES = dict(zip(program_code.GENERATORS, ("gi_yieldfrom", "cr_await", "ag_await")))
seen = set()

def same(one):
    inner = getattr(one, NAMES[type(one)])  # (it is suspended)
    assert awaited(one) is inner, (one, inner, awaited(one))
    seen.add(type(inner).__name__)
    return inner

def numbers(count):
    for number in range(count):
        yield number

def delegating():
    kept = numbers(3)
    yield 1
    try:
        raise ValueError
    except ValueError:
        yield from numbers(2)
        yield 2
    for _ in range(2):
        yield from numbers(2)
    yield kept

one = delegating()
assert awaited(one) is None
for _ in one:
    same(one)
assert awaited(one) is None

@types.coroutine
def pause():
    yield 7

class Context:
    async def __aenter__(self):
        await leaf()
    async def __aexit__(self, *error):
        await leaf()

async def leaf():
    await pause()
    try:
        raise KeyError
    except KeyError:
        await pause()

async def counted():
    for number in range(2):
        await pause()
        yield number

async def waiting():
    kept = numbers(3)
    await leaf()
    async for _ in counted():
        await leaf()
    async with Context():
        await leaf()

one = waiting()
try:
    while True:
        one.send(None)
        inner = one
        while type(inner) in NAMES:
            inner = same(inner)
except StopIteration:
    pass

async def running():
    assert awaited(outer) is None  # (to ask for its `cr_await` can end the process)
    await pause()

async def around():
    await running()

outer = around()
outer.send(None)
assert awaited(outer).__qualname__ == "running"
print(*sorted(seen))
"""


def test_what_waits_for_what_is_known_without_asking_those_that_run(any_python: str) -> None:
    program = PROGRAM.format(root=str(ROOT))
    ended = subprocess.run(
        [any_python, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert {"NoneType", "coroutine", "generator"} <= set(ended.stdout.split())
