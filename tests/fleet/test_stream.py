import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import psutil
import pytest
from fleets import fleet, write

from memdiag import analyze_many
from memdiag.fleet import engines, stream
from memdiag.fleet.judge_file import How, Task

# Imported by each Python that is started with it: a file system whose files kill their reader.
KILLER = """
import os
import fsspec

class Killer(fsspec.AbstractFileSystem):
    protocol = "killer"

    def info(self, path, **kwargs):
        os.kill(os.getpid(), 9)

fsspec.register_implementation("killer", Killer)
"""


def test_a_worker_that_is_killed_loses_no_recording_and_counts_none_twice(tmp_path):
    files = fleet(tmp_path, healthy=40, leaking=0)
    found = analyze_many(map(str, files), jobs=2)
    paths = [next(found).path]
    for child in psutil.Process().children():
        if "spawn_main" in " ".join(child.cmdline()):
            os.kill(child.pid, signal.SIGKILL)
    rest = list(found)
    assert all(one.verdict is not None for one in rest)
    assert sorted(paths + [one.path for one in rest]) == sorted(map(str, files))


def test_a_file_that_kills_its_worker_is_a_result_with_the_reason(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(KILLER)
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{before}")
    files = [*map(str, fleet(tmp_path / "f", healthy=10, leaking=1)), "killer://x"]
    found = list(analyze_many(files, jobs=1))
    assert sorted(one.path for one in found) == sorted(files)
    failed = {one.path: one.error for one in found if one.verdict is None}
    assert failed == {"killer://x": "the worker process died while it was judged"}


def test_files_that_cannot_be_read_are_results_with_the_reason(tmp_path):
    good = write(tmp_path / "good.csv")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(bytes(range(256)) * 20)
    fifo = tmp_path / "empty.csv"
    fifo.write_text("")
    paths = [str(good), str(binary), str(fifo), str(tmp_path / "gone.csv")]
    with ThreadPoolExecutor(1) as executor:
        found = {one.path: one for one in analyze_many(paths, executor=executor)}
    assert found.keys() == set(paths)
    assert found[str(good)].verdict is not None
    assert all(found[path].error for path in paths[1:])


class Lazy(Executor):
    """Runs a call when its result is asked for, and counts the calls that wait."""

    def __init__(self) -> None:
        self.waiting = self.most = 0

    def submit(self, fn, /, *args, **kwargs):
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        future: Future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_tasks_are_taken_as_they_are_needed():
    taken = []

    def tasks():
        for number in range(10_000):
            taken.append(number)
            yield Task(path=f"/nowhere/{number}.csv")

    found = stream.results(tasks(), engines.of_executor(Lazy()), How())
    next(found)
    assert len(taken) <= stream.FIRST_TASKS * 16 * 4
    found.close()


def test_a_call_ends_when_its_time_is_up_and_the_next_ones_are_shorter():
    calls = []

    class Counting(Lazy):
        def submit(self, fn, /, *args, **kwargs):
            calls.append(len(args[0]))
            return super().submit(fn, *args, **kwargs)

    opened = engines.of_executor(Counting()).opened
    tasks = [Task(path=f"/nowhere/{number}.csv") for number in range(30)]
    engine = engines.Engine(opened=opened, workers=1, call_s=0.0)
    found = [one.path for one in stream.results(tasks, engine, How())]
    assert sorted(found) == sorted(task.path for task in tasks)
    assert calls[:3] == [stream.FIRST_TASKS] * 3
    assert max(calls[3:]) <= 2


class Broken(Executor):
    """Breaks at its third call."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, fn, /, *args, **kwargs):
        self.calls += 1
        if self.calls >= 3:
            raise BrokenProcessPool
        future: Future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_a_broken_executor_of_the_caller_leaves_a_result_for_each_task():
    tasks = [Task(path=f"/nowhere/{number}.csv") for number in range(100)]
    found = list(stream.results(tasks, engines.of_executor(Broken()), How()))
    assert sorted(one.path for one in found) == sorted(task.path for task in tasks)
    reasons = Counter(one.error for one in found)
    assert reasons["the worker process died while it was judged"] == 100 - 2 * stream.FIRST_TASKS


class GivesUp(Executor):
    """An engine that reports a call with a certain task as failed."""

    def submit(self, fn, /, *args, **kwargs):
        future: Future = Future()
        if any(task.path.endswith("/5.csv") for task in args[0]):
            future.set_exception(RuntimeError("KilledWorker\n\x1b[31m"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_call_that_an_engine_gives_up_on_is_narrowed_to_its_recording():
    tasks = [Task(path=f"/nowhere/{number}.csv") for number in range(20)]
    found = {
        one.path: one.error for one in stream.results(tasks, engines.of_executor(GivesUp()), How())
    }
    assert len(found) == 20
    blamed = [path for path, error in found.items() if error.startswith("the engine failed")]
    assert blamed == ["/nowhere/5.csv"]
    assert found["/nowhere/5.csv"].isprintable()


DRIVER = """
import sys
import memdiag

if __name__ == "__main__":
    found = memdiag.analyze_many(sys.argv[1:], jobs=2)
    next(found)
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("signaled", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_driver(tmp_path, signaled):
    files = fleet(tmp_path, healthy=40, leaking=0)
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    command = [sys.executable, str(script), *map(str, files)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"ready\n"
        workers = psutil.Process(driver.pid).children(recursive=True)
        assert len(workers) >= 2
        driver.send_signal(signaled)
        driver.wait()
        _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []


def test_a_fleet_needs_no_engine_but_python(tmp_path):
    assert "distributed" not in sys.modules
    files = fleet(tmp_path, healthy=2, leaking=1)
    found = {one.path: one.verdict.value for one in analyze_many(tmp_path, jobs=1)}
    assert found[str(files[-1])] == "leak"
    assert sorted(found.values()) == ["leak", "warmup", "warmup"]
