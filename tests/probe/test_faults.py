"""No exception of ours ever surfaces in the program: each function of the probe is made to fail.

A copy of the probe gets a `raise` as the first statement of one function, and a program with
tags, forks, threads and a (pretended) torch and keras runs with it. Its output must be the same as
ever.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from interpreters import share
from sabotage import functions, sabotaged

import memdiag.probe
from memdiag.capture.probelink.ring_reader import Kind

_PARTS = 4  # in which all functions are tried: each in a fraction of a test's time limit
_FORK_WARNING = re.compile(
    r"^<string>:\d+: DeprecationWarning: .* multi-threaded, .*\n(?:  pid = os.fork\(\)\n)?", re.M
)
# If one of these fails, our thread is not stopped before a fork, and Python 3.12 warns of it.
_KEEP_THREAD = {
    "Probe.before_fork",
    "Heartbeat.stop",
    "Heartbeat.before_fork",
    "never_raises.guarded",
}
PROBE = Path(memdiag.probe.__file__).parent
STARTS = Path(__file__).parent / "programs" / "sabotaged_starts.py"
PROGRAM = """
import os, sys, time
session = getattr(sys.modules.get("_memdiag_probe"), "listener", None)
def tag(n):
    if session:
        session.phase_begin("train")
        session.counter("copies", n)
        session.step(n)
        session.phase_end("train")
        session.step("abc")
        session.counter("copies", None)
class Tags:
    pressure_calls = [("warn", lambda: None)]
sys.modules["memdiag.tags"] = Tags
try:
    session.follow_pressure()
    with open(session.ring_path().replace(".ring", ".warn-pressure"), "w") as file:
        file.write("warn")
except Exception:
    pass  # there is no probe, or one that fails: for this part the program has to know it
tag(1)
import torch
import keras
fit = keras.callbacks.CallbackList()
for event in ("train_begin", "test_begin", "test_end", "predict_begin", "predict_end"):
    getattr(fit, "on_" + event)()
fit.on_epoch_begin(0)
for batch in range(3):
    fit.on_train_batch_end(batch, logs={})
fit.on_train_end()
assert fit.seen == 10, fit.seen
import multiprocessing
tag(2)
def work():
    tag(3)
    print("child", flush=True)
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
pid = os.fork()
tag(4)
if pid == 0:
    os._exit(0)
print(os.waitpid(pid, 0)[1], child.exitcode)
sys.stderr.write("to stderr\\n")
sys.exit(7)
"""

KERAS = """
class callbacks:
    class CallbackList:
        seen = 0
        def _see(self, *args, **more):
            self.seen += 1
        on_train_end = on_test_begin = on_test_end = on_predict_begin = on_predict_end = _see
        def on_train_begin(self, logs=None):
            self.seen += 1
        def on_epoch_begin(self, epoch, logs=None):
            self.seen += 1
        def on_train_batch_end(self, batch, logs=None):
            self.seen += 1
"""


@pytest.fixture(scope="module")
def torch_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pretended")
    (directory / "torch.py").write_text("Tensor = int\noptim = None\n")
    (directory / "keras.py").write_text(KERAS)
    return directory


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted({file for file, _ in functions(PROBE)}))
def test_failure_of_a_function_of_the_probe_is_unnoticed(
    tmp_path: Path, torch_directory: Path, any_python: str, file: str
) -> None:
    shutil.copytree(PROBE, tmp_path / "probe", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "program.py").write_text(PROGRAM)
    names = share([name for path, name in functions(PROBE) if path == file], any_python)
    (tmp_path / "variants").mkdir()
    for name in names:
        variant = tmp_path / "variants" / name
        variant.mkdir()
        (variant / "source.py").write_text(sabotaged((PROBE / file).read_text(), name))
    subprocess.run(
        [any_python, "-S", STARTS, tmp_path, file],
        env={
            "PYTHONPATH": f"{tmp_path / 'probe' / 'inject'}:{torch_directory}",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        check=True,
        timeout=250,
    )
    ends = {name: _end(tmp_path / "variants" / name, name) for name in names}
    expected = ("child\n0 0\n", "to stderr\n", "7")
    assert {name: end for name, end in ends.items() if end != expected} == {}


def _end(variant: Path, name: str) -> tuple[str, str, str]:
    """(stdout, stderr, exit status) of the program with this function of the probe failing."""
    stdout, stderr, status = (
        (variant / part).read_text() for part in ("stdout", "stderr", "status")
    )
    if name in _KEEP_THREAD:
        stderr = _FORK_WARNING.sub("", stderr)
    return stdout, stderr, status


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_training_goes_on_whatever_function_of_the_probe_fails(
    watched, tmp_path: Path, part: int
) -> None:
    pytest.importorskip("torch")
    program = Path(__file__).parent / "programs" / "sabotaged_training.py"
    tests = str(Path(__file__).parent.parent)
    done = watched.run_without(
        sys.executable,
        str(program),
        str(PROBE),
        str(watched.directory),
        str(tmp_path),
        str(part),
        str(_PARTS),
        env={"PYTHONPATH": tests},
        timeout=280,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
    # The first child has a sound probe: the training did tell its steps. (Where iterations are
    # long there are phases within them, which carry the step as well.)
    events = watched.events()
    first = watched.reader.processes()[0].process
    steps = [e.step for e in events if e.process == first and e.kind is Kind.STEP]
    assert steps[:3] == [1, 2, 3]
