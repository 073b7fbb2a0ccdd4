"""No exception of ours ever surfaces in the program: each function of the probe is made to fail.

A copy of the probe gets a `raise` as the first statement of one function, and a program with
tags, forks, threads and a (pretended) torch and keras runs with it, if it reaches that function.
Its output must be the same as ever.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from interpreters import share
from sabotage import functions
from sabotaged_probes import PROBE, ends_of_variants

from memdiag.capture.probelink.ring_reader import Kind

# In which all functions are tried: each in a fraction of a test's time limit.
_PARTS, _TRAININGS = 4, 2
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
@pytest.mark.parametrize("part", range(_PARTS))
def test_failure_of_a_function_of_the_probe_is_unnoticed(
    tmp_path: Path, torch_directory: Path, any_python: str, part: int
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    names = share(functions(PROBE), any_python)[part::_PARTS]
    ends = ends_of_variants(
        tmp_path, any_python, names, {"PYTHONPATH": str(torch_directory)}, timeout_s=250
    )
    assert ends
    for (file, name), (stdout, stderr, status) in ends.items():
        said = _FORK_WARNING.sub("", stderr) if name in _KEEP_THREAD else stderr
        assert (stdout, said, status) == ("child\n0 0\n", "to stderr\n", "7"), (file, name)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("part", range(_TRAININGS))
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
        str(_TRAININGS),
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
