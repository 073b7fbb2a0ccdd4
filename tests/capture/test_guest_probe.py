"""The probe is let into processes that run already, leaves again, and changes nothing in them."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from interpreters import old_interpreter
from terminals import MEMDIAG

from memdiag.capture.probelink import inject
from memdiag.capture.probelink.channel import ChannelReader
from memdiag.capture.probelink.elf_symbols import exported, mapped_files
from memdiag.capture.probelink.guest_probe import attached_probe
from memdiag.capture.probelink.ptrace import Refused, Tracee
from memdiag.capture.probelink.ring_reader import Kind
from memdiag.errors import CannotWatch


def _tracing_works() -> bool:
    """Whether a process may be stopped that we did not start to be debugged."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as target:
        try:
            with Tracee(target.pid, patience_s=3.0):
                pass
        except (OSError, Refused, KeyError):
            return False
        finally:
            target.communicate()
    return True


needs_ptrace = pytest.mark.skipif(
    not _tracing_works(), reason="nothing may be traced here (ptrace_scope, container, processor)"
)
REMOTE_EXEC_NOTE = "the probe was attached by sys.remote_exec; it detaches with memdiag"

ptrace_goes_first = pytest.mark.skipif(
    hasattr(sys, "remote_exec"), reason="Python's own way goes before ptrace here"
)
PATIENCE_S = 30.0
# Answers each line of its input with what can be told of it, and runs Python code meanwhile.
TARGET = """
import gc, json, os, select, sys, threading, time
def state():
    modules = {name for name in sys.modules if "memdiag" in name}
    finders = [type(one).__name__ for one in sys.meta_path]
    found = [sorted(globals()), finders, sys.path, dict(os.environ), gc.isenabled()]
    found += [threading.active_count(), sys.gettrace(), sys.getswitchinterval()]
    found.append(len(os.listdir("/proc/self/task")))
    return found
def step(number):
    listener = getattr(sys.modules.get("_memdiag_probe"), "listener", None)
    if listener is not None:
        listener.step(number)
    return listener is not None
print("ready", flush=True)
while True:
    if not select.select([sys.stdin], [], [], 0.002)[0]:
        continue
    line = sys.stdin.readline()
    if not line:
        break
    if line.strip().isdigit():
        print(step(int(line)), flush=True)
    else:
        print(json.dumps(state()), flush=True)
"""


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


class Target:
    """A running process that can be asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid
        assert self._answer() == "ready"

    def step(self, number: int) -> bool:
        """Have it tell a step; whether there was a probe to tell it to."""
        return self.ask(str(number)) == "True"

    def ask(self, line: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._answer()

    def state_without_a_probe(self) -> str:
        """Its state, once the probe has left."""
        until_s = time.monotonic() + PATIENCE_S
        number = 1000
        while self.step(number) and time.monotonic() < until_s:
            number += 1
            time.sleep(0.01)
        while threads(self.pid) > 1 and time.monotonic() < until_s:
            time.sleep(0.01)
        return self.ask("state")

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def running(*command: str, **options: object) -> Iterator[Target]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, **options) as process:
        yield Target(process)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0


@ptrace_goes_first
@needs_ptrace
def test_probe_comes_hears_steps_and_leaves_the_process_as_it_was(any_python) -> None:
    with running(any_python, "-c", TARGET) as target:
        before = target.ask("state")
        with attached_probe(target.pid) as attached:
            assert attached.arrived
            assert attached.injected is not None
            assert attached.injected.way == "ptrace"
            assert 0 <= attached.injected.stopped_s < 2
            assert target.step(7)
            first, last = ChannelReader(attached.directory).drain()[:2]
            assert (first.kind, first.step) == (Kind.SAMPLE, None)
            assert (last.kind, last.step) == (Kind.STEP, 7)
            assert "python_blocks" in first.readings
        assert not attached.directory.exists()
        assert target.state_without_a_probe() == before


@needs_ptrace
def test_probe_comes_again_after_it_has_left() -> None:
    with running(sys.executable, "-c", TARGET) as target:
        for number in (1, 2):
            with attached_probe(target.pid) as attached:
                assert attached.arrived
                assert target.step(number)
                events = ChannelReader(attached.directory).drain()
                assert [e.step for e in events if e.kind is Kind.STEP] == [number]
            target.state_without_a_probe()


@needs_ptrace
def test_probe_leaves_when_its_watcher_is_killed() -> None:
    code = (
        "import sys\n"
        "from memdiag.capture.probelink.guest_probe import attached_probe\n"
        "with attached_probe(int(sys.argv[1])) as attached:\n"
        "    print(attached.arrived, flush=True)\n"
        "    input()\n"
    )
    with running(sys.executable, "-c", TARGET) as target:
        before = target.ask("state")
        watcher = subprocess.Popen(
            [sys.executable, "-c", code, str(target.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == "True\n"
        assert target.step(1)
        watcher.kill()
        watcher.communicate()
        assert target.state_without_a_probe() == before


@needs_ptrace
@pytest.mark.torch
def test_steps_of_a_running_training_are_seen_and_torch_is_left_as_it_was(tmp_path) -> None:
    pytest.importorskip("torch")
    program = (
        "import os, sys, torch\n"
        "torch.manual_seed(0)\n"
        "torch.set_num_threads(1)\n"
        "model = torch.nn.Linear(64, 64)\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "def step(number):\n"
        "    torch.manual_seed(number)\n"
        "    optimizer.zero_grad()\n"
        "    model(torch.randn(8, 64)).square().mean().backward()\n"
        "    optimizer.step()\n"
        "for number in range(100): step(number)\n"
        "print('ready', flush=True)\n"
        "def inside():\n"
        "    return getattr(sys.modules.get('_memdiag_probe'), 'listener', None)\n"
        "while inside() or not os.path.exists(sys.argv[1]):\n"
        "    step(number)\n"
        "hooks = sys.modules['torch.optim.optimizer']._global_optimizer_post_hooks\n"
        "print(len(hooks), torch.autograd.backward.__module__, "
        "hasattr(torch.autograd.backward, '__wrapped__'))\n"
    )
    stop = tmp_path / "stop"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(stop)], stdout=subprocess.PIPE, text=True
    ) as training:
        assert training.stdout is not None
        assert training.stdout.readline() == "ready\n"
        with attached_probe(training.pid) as attached:
            assert attached.arrived
            reader = ChannelReader(attached.directory)
            seen: list[int | None] = []
            until_s = time.monotonic() + PATIENCE_S
            while len(seen) < 5 and time.monotonic() < until_s:
                seen += [event.step for event in reader.drain() if event.kind is Kind.STEP]
            assert seen[:5] == [1, 2, 3, 4, 5]
        stop.touch()
        told, _ = training.communicate(timeout=PATIENCE_S)
    assert told == "0 torch.autograd False\n"


@ptrace_goes_first
@needs_ptrace
def test_call_that_does_not_return_is_taken_back_and_the_process_goes_on(monkeypatch) -> None:
    """As where the main thread holds the very lock that the call needs."""
    addresses = inject._addresses

    def to_nowhere(pid: int) -> dict[str, int]:
        libc = next(file for file in mapped_files(pid) if "/libc." in file.name)
        pause = exported(libc, frozenset({"pause"}))["pause"]
        return {**addresses(pid), "Py_AddPendingCall": pause}

    monkeypatch.setattr(inject, "_addresses", to_nowhere)
    monkeypatch.setattr(inject, "PATIENCE_S", 0.3)
    # (It may run between any two requests only if the processors are busy.)
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(3 * (os.cpu_count() or 1))
    ]
    try:
        for _ in range(4):
            with running(sys.executable, "-c", TARGET) as target:
                before = target.ask("state")
                with pytest.raises(CannotWatch, match="took too long; the process continues"):
                    attached_probe(target.pid).__enter__()
                assert target.ask("state") == before
    finally:
        for one in busy:
            with one:
                one.kill()


def test_way_of_python_itself_is_given_a_script_that_leaves_no_name_behind(tmp_path) -> None:
    """No Python 3.14 is needed for it: the target plays the part of `sys.remote_exec`."""
    mailbox = tmp_path / "script"
    target_program = TARGET.replace(
        'print("ready", flush=True)',
        "def take():\n"
        f"    while not os.path.exists({str(mailbox)!r}): time.sleep(0.001)\n"
        f"    with open({str(mailbox)!r}) as file: script = file.read()\n"
        "    with open(script) as file: text = file.read()\n"
        "    exec(compile(text, script, 'exec'), globals())\n"
        "print('ready', flush=True)",
    ).replace(
        "    if line.strip().isdigit():",
        "    if line == 'take\\n': take()\n    if line.strip().isdigit():",
    )

    def remote_exec(pid: int, script: str) -> None:
        (tmp_path / "new").write_text(script)
        (tmp_path / "new").rename(mailbox)

    with running(sys.executable, "-c", target_program) as target:
        before = target.ask("state")
        taking = threading.Thread(target=target.ask, args=("take",))
        taking.start()
        with attached_probe(target.pid, remote_exec=remote_exec) as attached:
            taking.join()
            assert attached.arrived
            assert attached.note() == REMOTE_EXEC_NOTE
            assert target.step(3)
        assert target.state_without_a_probe() == before


@pytest.mark.skipif(not hasattr(sys, "remote_exec"), reason="there is none before Python 3.14")
def test_python_lets_the_probe_in_by_itself_and_it_leaves_without_a_trace() -> None:
    with running(sys.executable, "-c", TARGET) as target:
        before = target.ask("state")
        with attached_probe(target.pid) as attached:
            assert attached.note() == REMOTE_EXEC_NOTE
            due_s = time.monotonic() + PATIENCE_S
            while not target.step(3):
                assert time.monotonic() < due_s, "it never came"
        assert target.state_without_a_probe() == before


@pytest.mark.skipif(not hasattr(sys, "remote_exec"), reason="there is none before Python 3.14")
def test_python_that_was_told_not_to_be_debugged_says_so() -> None:
    with running(sys.executable, "-X", "disable-remote-debug", "-c", TARGET) as target:
        assert "PYTHON_DISABLE_REMOTE_DEBUG" in refused(target.pid).remedy


def test_refusal_by_pythons_own_way_is_explained() -> None:
    def remote_exec(pid: int, script: str) -> None:
        raise RuntimeError("Remote debugging is not enabled in the remote process")

    with running(sys.executable, "-c", TARGET) as target:
        with pytest.raises(CannotWatch, match="Remote debugging is not enabled") as caught:
            attached_probe(target.pid, remote_exec=remote_exec).__enter__()
        assert "PYTHON_DISABLE_REMOTE_DEBUG" in caught.value.remedy


def refused(pid: int) -> CannotWatch:
    with pytest.raises(CannotWatch) as caught:
        attached_probe(pid).__enter__()
    return caught.value


def test_program_that_is_no_python_is_refused() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as target:
        assert "cat is not a Python program" in refused(target.pid).message
        target.communicate()


def test_old_python_is_refused() -> None:
    program = old_interpreter("3.7")
    if program is None:
        pytest.skip("no Python 3.7 here")
    with running(program, "-c", TARGET) as target:
        assert "Python 3.7 is older than the probe supports" in refused(target.pid).message


def test_process_that_is_being_debugged_is_refused() -> None:
    seize = 0x4206
    with running(sys.executable, "-c", TARGET) as target:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(seize, target.pid, 0, 0) != 0:
            pytest.skip("nothing may be traced here")
        error = refused(target.pid)
        assert f"debugged already, by process {os.getpid()}" in error.message


def test_process_that_protects_itself_is_refused(tmp_path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may look into everything")
    guarded = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n" + TARGET
    with running(sys.executable, "-c", guarded) as target:
        assert "protects itself" in refused(target.pid).message


@ptrace_goes_first
@needs_ptrace
def test_watch_with_attach_records_steps_and_says_how_long_it_stopped_the_process(tmp_path) -> None:
    with running(sys.executable, "-c", TARGET) as target:
        watching = subprocess.Popen(
            [
                *MEMDIAG,
                "watch",
                "-p",
                str(target.pid),
                "--attach",
                "--duration",
                "2",
                "-o",
                "r.csv",
            ],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        number = 0
        while watching.poll() is None:
            target.step(number)
            number += 1
            time.sleep(0.01)
        _, said = watching.communicate()
    assert "the probe was attached by ptrace, which stopped the process for" in said
    header, *rows = (tmp_path / "r.csv").read_text().splitlines()
    step = header.split(",").index("step")
    assert len({row.split(",")[step] for row in rows}) > 10
    sidecar = json.loads((tmp_path / "r.meta.json").read_text())
    assert any("which stopped the process for" in note for note in sidecar["notes"])
    assert not [m for m in sidecar["missing"] if m["metric"] == "probe_readings"]
