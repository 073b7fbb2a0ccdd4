"""The probe gets into real processes of every Python, and nobody can tell from the outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from interpreters import interpreters, old_interpreter

from memdiag.capture.probelink.channel import prepare
from memdiag.capture.probelink.ring_reader import Kind

TAG = "import sys; sys.modules['_memdiag_probe'].listener.step(7)"
STATE = """
import os, sys
print(sys.path)
print(sorted(name for name in sys.modules if "customize" in name))
print(sys.argv, __name__, sys.flags)
print([name for name in os.environ if "MEMDIAG" not in name and name != "PYTHONPATH"])
import threading, gc
print(threading.active_count(), gc.isenabled(), gc.get_threshold())
print(sys.getswitchinterval(), sys.getrecursionlimit(), sys.gettrace(), sys.getprofile())
"""


def steps(watched) -> list[int | None]:
    return [event.step for event in watched.events()]


def test_probe_is_in_a_script(watched, any_python, tmp_path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TAG)
    assert watched.run(any_python, str(script)).stderr == ""
    assert steps(watched) == [7]


def test_probe_is_in_a_module_run_by_name(watched, any_python, tmp_path) -> None:
    (tmp_path / "train.py").write_text(TAG)
    assert watched.run(any_python, "-m", "train", cwd=tmp_path).stderr == ""
    assert steps(watched) == [7]


def test_probe_is_in_a_command_line_program(watched, any_python) -> None:
    assert watched.run(any_python, "-c", TAG).stderr == ""
    assert steps(watched) == [7]


def test_probe_is_in_a_program_on_stdin(watched, any_python) -> None:
    assert watched.run(any_python, input=TAG).stderr == ""
    assert steps(watched) == [7]


def test_probe_is_in_subprocesses_of_other_pythons(watched, python) -> None:
    others = list(interpreters().values())
    code = f"import subprocess\nfor p in {others!r}: subprocess.check_call([p, '-c', {TAG!r}])"
    assert watched.run(python, "-c", code).returncode == 0
    assert steps(watched) == [7] * len(others)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_have_a_ring_and_a_role(
    watched, any_python, tmp_path, method
) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import multiprocessing, sys\n"
        f"def tag():\n    {TAG}\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context({method!r})\n"
        "    children = [context.Process(target=tag, name='child-%d' % i) for i in range(2)]\n"
        "    for child in children: child.start()\n"
        "    for child in children: child.join()\n"
    )
    done = watched.run(any_python, str(script))
    assert (done.stderr, done.returncode) == ("", 0)
    events = watched.events()
    assert [event.step for event in events] == [7, 7]
    labels = watched.reader.labels()
    assert {labels[event.process] for event in events} == {"child-0", "child-1"}


def test_fork_and_exec_do_not_mix_processes_up(watched, any_python) -> None:
    code = (
        "import os, sys\n"
        "session = sys.modules['_memdiag_probe'].listener\n"
        "session.step(1)\n"
        "if os.fork() == 0:\n"
        "    session.step(2)\n"
        "    os.execv(sys.executable, [sys.executable, '-c', "
        "\"import sys; sys.modules['_memdiag_probe'].listener.step(3)\"])\n"
        "os.wait()\n"
        "session.step(4)\n"
    )
    assert watched.run(any_python, "-c", code).stderr == ""
    events = watched.events()
    assert [event.step for event in events] == [1, 2, 3, 4]
    parent, child, after_exec, again = (event.process for event in events)
    assert (parent, child) == (again, after_exec)
    assert parent != child
    assert len(list(watched.directory.iterdir())) == 3


def test_interpreter_looks_the_same_with_and_without(watched, any_python) -> None:
    with_us, without = (
        watched.run(any_python, "-c", STATE),
        watched.run_without(any_python, "-c", STATE),
    )
    assert with_us.stdout == without.stdout
    assert with_us.stderr == without.stderr == ""


@pytest.mark.parametrize(
    "body",
    [
        "import sys; sys.stderr.write('mine\\n'); VALUE = 1",
        "raise ValueError('broken on purpose')",
        "import not_there_at_all",
        "import sys; sys.exit(5)",
        "this is no python",
    ],
)
def test_sitecustomize_of_the_program_runs_as_without_us(
    watched, any_python, tmp_path, body
) -> None:
    (tmp_path / "sitecustomize.py").write_text(body)
    code = (
        "import sys\n"
        "module = sys.modules.get('sitecustomize')\n"
        "print(getattr(module, '__file__', None), getattr(module, 'VALUE', None))"
    )
    env = {"PYTHONPATH": str(tmp_path)}
    with_us = watched.run(any_python, "-c", code, env=env)
    without = watched.run_without(any_python, "-c", code, env=env)
    assert (with_us.stdout, with_us.returncode) == (without.stdout, without.returncode)
    assert with_us.stderr.splitlines()[-3:] == without.stderr.splitlines()[-3:]
    if "exit" not in body:
        assert with_us.stderr == without.stderr


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_pythons_too_old_for_the_probe_do_not_notice(watched, version) -> None:
    program = old_interpreter(version)
    if program is None:
        pytest.skip(f"no Python {version} here")
    code = "import sys; sys.stdout.write(repr(sys.path)); sys.exit(4)"
    with_us, without = watched.run(program, "-c", code), watched.run_without(program, "-c", code)
    assert (with_us.stdout, with_us.stderr) == (without.stdout, without.stderr)
    assert with_us.returncode == 4


def test_streams_stdin_and_exit_status_are_untouched(watched, any_python) -> None:
    code = (
        "import sys\n"
        "print(sys.stdin.read().upper(), sys.stdin.isatty())\n"
        "sys.stderr.write('err')\n"
        "sys.exit(7)"
    )
    with_us = watched.run(any_python, "-c", code, input="some text")
    without = watched.run_without(any_python, "-c", code, input="some text")
    assert (with_us.stdout, with_us.stderr) == (without.stdout, without.stderr)
    assert with_us.returncode == 7


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_fork_beside_a_loaded_torch_warns_no_more_than_without(watched, tmp_path, version) -> None:
    program = interpreters().get(version)
    if program is None:
        pytest.skip(f"no Python {version}, which warns of threads at forks")
    (tmp_path / "torch.py").write_text("Tensor = int\noptim = None\n")
    code = (
        "import gc, os, sys, time, torch\n"
        "def threads():\n"
        "    with open('/proc/self/stat') as file: return int(file.read().split()[19])\n"
        "while threads() < 2: time.sleep(0.001)\n"
        "for _ in range(5):\n"
        "    pid = os.fork()\n"
        "    if pid == 0: os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "gc.collect()\n"
        "while threads() < 2: time.sleep(0.001)\n"
    )
    done = watched.run(program, "-W", "always", "-c", code, env={"PYTHONPATH": str(tmp_path)})
    assert (done.stderr, done.returncode) == ("", 0)


def test_processes_of_a_distributed_job_are_labelled_by_rank(watched, python) -> None:
    for rank in ("0", "1"):
        env = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2"}
        watched.run(python, "-c", TAG, env=env)
    watched.events()
    assert sorted(watched.reader.labels().values()) == ["rank0", "rank1"]


@pytest.mark.parametrize("directory", ["/nowhere/at/all", os.devnull, ""])
def test_program_runs_whose_channel_cannot_be_written(watched, python, directory) -> None:
    code = (
        "import sys\n"
        "session = getattr(sys.modules.get('_memdiag_probe'), 'listener', None)\n"
        "if session: session.step(1)\n"
        "print('fine')"
    )
    environ = {**prepare(watched.environ, watched.directory), "MEMDIAG_CHANNEL": directory}
    done = subprocess.run(
        [python, "-c", code], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("fine\n", "", 0)


def test_program_tags_where_memdiag_is_not_installed(watched, any_python, tmp_path) -> None:
    code = (
        "import sys\n"
        "import memdiag\n"
        "for n in range(3): memdiag.step(n)\n"
        "print(sorted(name for name in sys.modules if name.startswith('memdiag')))\n"
    )
    # Isolated from the tests' own environment, in which memdiag is installed.
    bare = "import site, sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
    done = watched.run(any_python, "-c", bare + code, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("['memdiag', 'memdiag.tags']\n", "")
    assert [event.step for event in watched.events() if event.kind is Kind.STEP] == [0, 1, 2]


def test_tags_of_the_package_reach_the_channel(watched) -> None:
    root = str(Path(__file__).parent.parent.parent)
    code = (
        "import memdiag\n"
        "with memdiag.phase('train'):\n"
        "    with memdiag.phase('forward'):\n"
        "        memdiag.counter('copies', 3)\n"
        "    memdiag.step(1)\n"
    )
    watched.run(sys.executable, "-c", code, env={"PYTHONPATH": root})
    seen = [(e.kind.name, e.phase, e.step, e.value) for e in watched.events()]
    assert seen == [
        ("PHASE_BEGIN", "train", None, None),
        ("PHASE_BEGIN", "train/forward", None, None),
        ("COUNTER", "train/forward", None, 3.0),
        ("PHASE_END", "train", None, None),
        ("STEP", "train", 1, None),
        ("PHASE_END", "", 1, None),
    ]
