"""What is told of processes that the probe is not in: each case once, only where it helps.

Real processes in real environments; time alone is pretended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from memdiag.capture.probelink import channel
from memdiag.capture.probelink.uninstrumented import UninstrumentedProcesses
from memdiag.capture.process.attach import this_table
from memdiag.capture.process.tree import ProcessTree
from memdiag.capture.session import Session
from memdiag.values.measurements import Missing

WAIT = "print('ready', flush=True); input()"
Tell = Callable[..., tuple[Missing, ...]]


@pytest.fixture
def tell(tmp_path: Path) -> Iterator[Tell]:
    """What is missing of a command that says "ready" so many times and lives for so long."""
    with ExitStack() as stack:

        def ask(
            *command: str,
            lives_s: float = 60.0,
            ready: int = 1,
            watched: bool = True,
            **changes: str | None,
        ) -> tuple[Missing, ...]:
            directory = channel.create(tmp_path / "base") if watched else None
            environ = channel.prepare(os.environ, directory) if directory else dict(os.environ)
            kept = {k: v for k, v in {**environ, **changes}.items() if v is not None}
            pipe = subprocess.PIPE
            target = stack.enter_context(
                subprocess.Popen(command, env=kept, stdin=pipe, stdout=pipe)
            )
            stack.callback(target.communicate, b"\n" * ready)
            table = this_table()
            stack.callback(table.close)
            reader = channel.ChannelReader(directory) if directory else None
            session = Session(
                tree=ProcessTree(table, root=target.pid),
                root=target.pid,
                began_at_s=0.0,
                channel=reader,
                uninstrumented=UninstrumentedProcesses(target.pid, directory),
            )
            assert target.stdout is not None
            for _ in range(ready):
                assert target.stdout.readline() == b"ready\n"
            for at_s in (0.0, 0.3, 1.1, 5.1):
                if at_s <= lives_s:
                    session.tick(at_s)
            return session.missing()

        yield ask


def python(*flags: str, code: str = WAIT) -> list[str]:
    return [sys.executable, *flags, "-c", code]


def test_nothing_is_said_of_a_process_with_a_probe(tell) -> None:
    assert tell(*python()) == ()


@pytest.mark.parametrize("flag", ["-I", "-S", "-E"])
def test_isolating_flag_is_told_with_a_remedy(tell, flag) -> None:
    (told,) = tell(*python(flag), lives_s=0.5)
    assert (told.metric, told.process) == ("probe_readings", "main")
    assert flag in told.why.reason
    assert f"start it without {flag}" in told.why.remedy


def test_cleared_and_replaced_environments_are_told(tell) -> None:
    (told,) = tell(*python(), PYTHONPATH=None, MEMDIAG_CHANNEL=None)
    assert "cleared environment" in told.why.reason
    (told,) = tell(*python(), PYTHONPATH="/elsewhere")
    assert "replaced by '/elsewhere'" in told.why.reason


def test_sitecustomize_that_does_not_go_on_is_told(tell, tmp_path) -> None:
    (tmp_path / "sitecustomize.py").write_text("")
    ours = channel.prepare({}, tmp_path)["PYTHONPATH"]
    (told,) = tell(*python(), PYTHONPATH=f"{tmp_path}{os.pathsep}{ours}")
    assert str(tmp_path / "sitecustomize.py") in told.why.reason


def test_program_that_is_no_python_is_told_once_for_the_tree(tell) -> None:
    (told,) = tell("sh", "-c", "echo ready; head -n 1; true")
    assert told.why.reason.endswith("is not a Python program")
    (told,) = tell("head", "-n", "1", ready=0)
    assert (told.process, told.why.reason) == ("main", "head is not a Python program")


def test_nothing_is_said_of_the_shell_around_a_python_with_a_probe(tell) -> None:
    script = f'"{sys.executable}" -c "{WAIT}"; true'
    assert tell("sh", "-c", script) == ()


def test_of_a_shell_around_a_python_without_a_probe_the_python_is_told(tell) -> None:
    (told,) = tell("sh", "-c", f'"{sys.executable}" -I -c "{WAIT}"; true')
    assert (told.process, "-I" in told.why.reason) == ("main", True)


def test_helper_without_a_probe_is_told_once_it_has_settled(tell) -> None:
    code = f"import subprocess, sys\nsubprocess.call([sys.executable, '-I', '-c', {WAIT!r}])\n"
    assert tell(*python(code=code), lives_s=2.0) == ()
    (told,) = tell(*python(code=code))
    assert "python" in told.process
    assert "-I" in told.why.reason


def test_processes_with_the_same_reason_are_told_together(tell) -> None:
    code = (
        "import subprocess, sys\n"
        f"two = [subprocess.Popen([sys.executable, '-c', {WAIT!r}], env={{}}) for _ in 'ab']\n"
        "[one.wait() for one in two]\n"
    )
    (told,) = tell(*python(code=code), ready=2)
    assert "cleared environment (and so for one more process)" in told.why.reason


def test_forked_child_that_has_nothing_to_say_has_its_parents_probe(tell) -> None:
    code = f"import os\nif os.fork() == 0:\n    {WAIT}\n    os._exit(0)\nos.wait()"
    assert tell(*python(code=code)) == ()


def test_process_that_was_not_prepared_is_told_of_the_ways_in(tell) -> None:
    (told,) = tell(*python(), watched=False)
    assert "not started under memdiag" in told.why.reason
    assert "--attach" in told.why.remedy
