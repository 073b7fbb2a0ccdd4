"""What a program says of itself is the same with the probe in it: tracebacks, warnings, coverage,
signals that it waits for, interpreters that it ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TORCH = """
import os, warnings
warnings.warn("will be gone", DeprecationWarning, stacklevel=2)
if "FAILS_AS" in os.environ:
    raise {"ImportError": ImportError, "ValueError": ValueError}[os.environ["FAILS_AS"]]("broken")
Tensor = int
optim = None
"""


@pytest.fixture
def pretended(tmp_path: Path) -> dict[str, str]:
    """An environment in which there is something that calls itself torch, and one numpy."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "torch.py").write_text(TORCH)
    (tmp_path / "lib" / "numpy.py").write_text("ndarray = int\n")
    return {"PYTHONPATH": str(tmp_path / "lib")}


@pytest.mark.parametrize("error", ["ImportError", "ValueError"])
def test_traceback_of_a_failing_import_is_the_programs_own(
    watched, any_python, pretended, error
) -> None:
    code, env = "import torch", {**pretended, "FAILS_AS": error}
    with_us = watched.run(any_python, "-c", code, env=env)
    without = watched.run_without(any_python, "-c", code, env=env)
    assert error in without.stderr
    assert with_us.stderr == without.stderr


def test_warning_of_a_module_names_the_line_that_imports_it(watched, any_python, pretended) -> None:
    with_us = watched.run(any_python, "-c", "import torch", env=pretended)
    without = watched.run_without(any_python, "-c", "import torch", env=pretended)
    assert "<string>:1: DeprecationWarning: will be gone" in without.stderr
    assert with_us.stderr == without.stderr


def test_nothing_of_the_probe_is_traced_by_file(watched, any_python, pretended, tmp_path) -> None:
    (tmp_path / "program.py").write_text("import torch, json, os\nif os.fork() == 0: os._exit(0)\n")
    command = [any_python, "-m", "trace", "--count", "--coverdir"]
    for run, name in ((watched.run, "with_us"), (watched.run_without, "without")):
        run(*command, str(tmp_path / name), str(tmp_path / "program.py"), env=pretended)
    with_us, without = (
        {file.name for file in (tmp_path / name).iterdir()} for name in ("with_us", "without")
    )
    assert "program.cover" in without
    assert not [name for name in with_us if "memdiag" in name or "probe" in name]
    assert with_us >= without


def test_signal_that_the_program_waits_for_is_not_delivered_to_our_thread(
    watched, any_python, pretended
) -> None:
    code = (
        "import os, signal, time\n"
        "import numpy\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"  # as soon as can be
        "print(signal.sigwait({signal.SIGUSR1}) == signal.SIGUSR1)\n"
        "while len(os.listdir('/proc/self/task')) < 2: time.sleep(0.001)\n"
        "time.sleep(0.05)\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
        "print(signal.sigwait({signal.SIGUSR1}) == signal.SIGUSR1)\n"
        "print(signal.pthread_sigmask(signal.SIG_BLOCK, ()) == {signal.SIGUSR1})\n"
    )
    done = watched.run(any_python, "-c", code, env=pretended)
    assert (done.stdout, done.stderr, done.returncode) == ("True\nTrue\nTrue\n", "", 0)


def test_interpreter_within_the_process_ends_though_it_has_imported_numpy(
    watched, any_python, pretended
) -> None:
    code = (
        "try: import _xxsubinterpreters as interpreters\n"
        "except ImportError: import _interpreters as interpreters\n"
        "import time\n"
        "other = interpreters.create()\n"
        "interpreters.run_string(other, 'import numpy, time; time.sleep(0.02)')\n"
        "interpreters.destroy(other)\n"
        "print('fine')\n"
    )
    done = watched.run(any_python, "-c", code, env=pretended)
    assert (done.stdout, done.stderr, done.returncode) == ("fine\n", "", 0)


def test_one_finder_of_ours_and_no_entry_of_ours_stay_behind(watched) -> None:
    code = (
        "import sys\n"
        "print(len(sys.meta_path))\n"
        "print([one for one in sys.path_importer_cache if one.endswith('inject')])\n"
        "print([n for n, m in sys.modules.items() if n.startswith('_memdiag_probe.')"
        " and hasattr(m, '__file__')])\n"
    )
    with_us, without = (
        run(sys.executable, "-c", code).stdout.splitlines()
        for run in (watched.run, watched.run_without)
    )
    assert int(with_us[0]) == int(without[0]) + 1
    assert with_us[1:] == ["[]", "[]"]


GENERATIONS = """
import multiprocessing as mp
from multiprocessing import util

def child(generation, conn):
    if generation > 1:
        process = context.Process(target=child, args=(generation - 1, conn))
        process.start()
        process.join()
    else:
        conn.send(len(util._afterfork_registry))

context = mp.get_context("fork")
if __name__ == "__main__":
    ours, theirs = context.Pipe(False)
    process = context.Process(target=child, args=(4, theirs))
    process.start()
    print(ours.recv() - len(util._afterfork_registry))
    process.join()
"""


def test_children_of_children_inherit_nothing_more_from_multiprocessing(
    watched, any_python, tmp_path
) -> None:
    script = tmp_path / "generations.py"
    script.write_text(GENERATIONS)
    with_us, without = watched.run(any_python, script), watched.run_without(any_python, script)
    assert with_us.stdout == without.stdout != ""
