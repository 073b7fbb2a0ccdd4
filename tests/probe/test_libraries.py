"""Iterations that a library reports are steps, unless a better source reports some."""

from __future__ import annotations

import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

import pytest
from interpreters import interpreters
from sabotage import functions, sabotaged

import memdiag.probe
from memdiag.capture.probelink.ring_reader import Kind

PROGRAM = Path(__file__).parent / "programs" / "libraries.py"
SOURCE = PROGRAM.read_text().splitlines()
# The parts of the libraries that the hooks use.
FAKE_MODULES = {
    "numpy.py": "ndarray = int\n",
    "tqdm/__init__.py": "from .std import tqdm\ntrange = None\n",
    "tqdm/std.py": """
class tqdm:
    def __init__(self, iterable=None, total=None):
        self.iterable = iterable
        self.total = len(iterable) if total is None else total
        self.pos = self.n = 0
    def __iter__(self):
        for n, thing in enumerate(self.iterable):
            yield thing
            if n % 3 == 0:
                self.update(3)
    def update(self, n=1):
        self.n += n
""",
    "sklearn/__init__.py": "from . import base\nclone = None\n",
    "sklearn/base.py": """
import contextlib, functools
@contextlib.contextmanager
def config_context(**settings):
    yield
def _fit_context(*, prefer_skip_nested_validation):
    def decorator(fit_method):
        @functools.wraps(fit_method)
        def wrapper(estimator, *args):
            with config_context(skip=prefer_skip_nested_validation):
                return fit_method(estimator, *args)
        return wrapper
    return decorator
""",
    "sklearn/estimators.py": """
from .base import _fit_context
class Model:
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, work):
        work()
""",
    "gymnasium/__init__.py": "from . import wrappers\n",
    "gymnasium/wrappers.py": """
class OrderEnforcing:
    def reset(self, *, seed=None):
        return seed
""",
}
_AT_ONCE = 4
# The files that count loops, and a program that uses all of them.
COUNTING = ("libraries.py", "loop_events.py", "loop_steps.py", "loops.py")
PROBE = Path(memdiag.probe.__file__).parent
ALL = """
import os, time
import numpy, gymnasium, sklearn.estimators
from tqdm import tqdm
n = 0
while n < 120:
    n += 1
    time.sleep(0.002)
    if n % 3 == 0:
        continue
    for _ in range(50):
        pass
for _ in tqdm(range(60)):
    n += 1
    time.sleep(0.002)
bar = tqdm(total=3)
bar.update(3)
sklearn.estimators.Model().fit(lambda: None)
pid = os.fork()
if pid == 0:
    os._exit(0)
print(n, bar.n, gymnasium.wrappers.OrderEnforcing().reset(seed=7), os.waitpid(pid, 0)[1])
raise SystemExit(7)
"""
EXPECTED = {
    "bars": "iterations of the loop at libraries.py:{} ({}, 50 in all, {})",
    "updates": "iterations of the loop at libraries.py:{} ({}, 1000 in all, {})",
    "fits": "fits by scikit-learn at libraries.py:{} ({}, {})",
    "episodes": "episodes of gymnasium at libraries.py:{} ({}, {})",
}


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    directory = tmp_path / "site-packages"
    for name, source in FAKE_MODULES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return directory


@pytest.mark.parametrize("version", ["3.8", "3.11", "3.13"])
@pytest.mark.parametrize("name", EXPECTED)
def test_iterations_of_a_library_are_counted_exactly(watched, lib, name, version) -> None:
    python = interpreters().get(version)
    if python is None:
        pytest.skip(f"no Python {version}")
    if name in ("fits", "episodes") and version == "3.13":
        pytest.skip("the program's own loop is found")
    done = watched.run(python, str(PROGRAM), name, env={"PYTHONPATH": str(lib)}, cwd=PROGRAM.parent)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)
    events = watched.events()
    own = [(e.value, e.step) for e in events if e.name == "own" and e.step is not None]
    assert len(list(groupby(value - step for value, step in own))) == 1
    line = next(n for n, text in enumerate(SOURCE, 1) if text.endswith(f"# step:{name}"))
    expected = re.escape(f"steps: {EXPECTED[name]}").replace(r"\{\}", "{}")
    pattern = expected.format(line, r"[\d.]+ m?s each", r"counted from [\d.]+ s on")
    (note,) = [e.name for e in events if e.kind is Kind.NOTE]
    assert re.fullmatch(pattern, note)


@pytest.mark.parametrize("version", [pytest.param("3.8", marks=pytest.mark.slow), "3.13"])
@pytest.mark.parametrize("file", COUNTING)
def test_failure_of_a_function_that_counts_is_unnoticed(
    watched, tmp_path, lib, version, file
) -> None:
    python = interpreters().get(version)
    if python is None:
        pytest.skip(f"no Python {version}")
    sound = tmp_path / "sound"
    shutil.copytree(PROBE, sound, ignore=shutil.ignore_patterns("__pycache__"))
    for module, before, after in (
        ("heartbeat.py", "EARLY_S = 32, 0.25", "EARLY_S = 3200, 0.01"),
        ("loop_steps.py", "SELECT_AFTER_S = 2.0", "SELECT_AFTER_S = 0.05"),
    ):
        source = (sound / module).read_text()
        assert before in source
        (sound / module).write_text(source.replace(before, after))
    source = (sound / file).read_text()
    subprocess.run([python, "-m", "compileall", "-q", sound], check=True)

    def end(name: str) -> tuple[str, str, int]:
        """(stdout, stderr, exit status) with this function of the probe failing."""
        probe, channel = tmp_path / f"probe-{name}", tmp_path / f"channel-{name}"
        shutil.copytree(sound, probe)
        (probe / file).write_text(failing[name])
        channel.mkdir(mode=0o700)
        env = {"PYTHONPATH": f"{probe / 'inject'}:{lib}", "MEMDIAG_CHANNEL": str(channel)}
        done = watched.run_without(python, "-c", ALL, env=env)
        return done.stdout, done.stderr, done.returncode

    names = [name for path, name in functions(PROBE) if path == file]
    failing = {name: sabotaged(source, name) for name in names}  # `ast` is not safe for threads
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # they mostly wait
        ends = dict(zip(names, pool.map(end, names), strict=True))
    assert {name: one for name, one in ends.items() if one != ("180 3 7 0\n", "", 7)} == {}
