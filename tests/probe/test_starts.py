"""The probe is in whatever way a training is started."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

TAG = "import sys; sys.modules['_memdiag_probe'].listener.step(7)\n"


def steps(watched) -> list[int | None]:
    return [event.step for event in watched.events() if event.step is not None]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    script = tmp_path / "train"
    script.write_text(f"#!{sys.executable}\n{TAG}")
    script.chmod(0o755)
    return script


def test_script_by_its_shebang_as_console_scripts_are(watched, script) -> None:
    assert watched.run(str(script)).stderr == ""
    assert steps(watched) == [7]


@pytest.mark.parametrize("exec_it", ["", "exec "])
def test_shell_script_that_starts_python(watched, script, tmp_path, exec_it) -> None:
    (tmp_path / "train.sh").write_text(
        f'export PYTHONPATH="/mine:$PYTHONPATH"\n{exec_it}{script}\n'
    )
    assert watched.run("sh", str(tmp_path / "train.sh")).stderr == ""
    assert steps(watched) == [7]


def test_pytest(watched, tmp_path) -> None:
    (tmp_path / "test_it.py").write_text(f"def test_it():\n    {TAG}")
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = watched.run(sys.executable, "-m", "pytest", "-q", cwd=tmp_path, env=alone)
    assert "1 passed" in done.stdout
    assert steps(watched) == [7]


def test_debugger_profiler_and_tracer(watched, script) -> None:
    counted = ["trace", "--count", "--coverdir", str(script.parent)]  # else beside our modules
    for tool in (["pdb", "-c", "continue", "-c", "quit"], ["cProfile"], counted):
        watched.run(sys.executable, "-m", *tool, str(script), input="", cwd=script.parent)
    assert steps(watched) == [7, 7, 7]


def test_another_directory_environment_and_user_site(watched, script, tmp_path) -> None:
    options = ["-s", "-B", "-u", "-O", "-W", "error", "-X", "dev"]
    done = watched.run(sys.executable, *options, str(script), cwd=tmp_path, env={"HOME": "/none"})
    assert (done.stderr, steps(watched)) == ("", [7])


@pytest.mark.skipif(shutil.which("setsid") is None, reason="there is no setsid here")
def test_wrappers_around_the_program(watched, script) -> None:
    for wrapper in (["env", "A=b"], ["nice", "-n", "1"], ["setsid", "-w"], ["nohup"]):
        watched.run(*wrapper, str(script))
    assert steps(watched) == [7, 7, 7, 7]


@pytest.mark.parametrize(
    "code",
    [
        "import numpy, time; print('ready', flush=True); time.sleep(60)",
        "print('ready', flush=True)\nwhile True: [[] for _ in range(1000)]",
        "print('ready', flush=True)\nwhile True: sum(range(1000))",
        "import time\nprint('ready', flush=True)\nwhile True: sum(range(10**5)); time.sleep(0.03)",
        "import time\nprint('ready', flush=True)\nwhile True: sum(range(10**4)); time.sleep(0.03)",
    ],
    ids=["numpy", "no_import", "no_containers", "sleeps_most_of_the_time", "computes_little"],
)
def test_program_that_computes_without_a_framework_is_measured(watched, code) -> None:
    with watched.start(sys.executable, "-c", code) as target:
        target.stdout.readline()
        told: list[int] = []
        while not told:
            told = [e.readings.get("malloc_bytes", 0) for e in watched.events() if e.readings]
        target.kill()
    assert min(told) > 0


def test_launcher_that_waits_gets_no_thread(watched) -> None:
    code = (
        "import os, time\n"
        "time.sleep(4)\n"
        "print(len(os.listdir('/proc/self/task')))\n"
        "for _ in range(3): [[] for _ in range(1000)]\n"
        "print(len(os.listdir('/proc/self/task')))\n"
    )
    assert watched.run(sys.executable, "-c", code).stdout.split() == ["1", "2"]


def test_program_without_a_framework_forks_unharmed(watched, any_python) -> None:
    """Its children can import what the first beat in the parent imports."""
    code = (
        "import os, sys, time\n"
        "until = time.monotonic() + 3.5\n"
        "while time.monotonic() < until:\n"
        "    [[] for _ in range(1000)]\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        import ctypes, opcode\n"
        "        os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "print('done')\n"
    )
    done = watched.run(any_python, "-W", "ignore", "-c", code, timeout=60)
    assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.mark.torch
@pytest.mark.slow
def test_torchrun_has_a_ring_for_each_rank(watched, tmp_path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(TAG)
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    done = watched.run(sys.executable, *launch, "train.py", cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    told = [event for event in watched.events() if event.step == 7]
    labels = watched.reader.labels()
    assert sorted(labels[event.process] for event in told) == ["rank0", "rank1"]
