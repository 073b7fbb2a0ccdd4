"""Lines that allocate what stays in use are recorded for a few steps, and nothing else changes."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
import types
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memdiag.probe import allocation_recording, guard, ring_format
from memdiag.probe.allocation_recording import AllocationRecording, Tensors, Traces
from memdiag.probe.device_snapshot import DeviceSnapshot

PROGRAM = Path(__file__).parent / "programs" / "unnamed_leaks.py"
HERE = str(Path(__file__).resolve())


@pytest.fixture
def users(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], bool]:
    """This file is the program."""

    def is_users(file: str) -> bool:
        return file == HERE

    monkeypatch.setattr(allocation_recording, "is_users", is_users)
    return is_users


MADE = next(n for n, line in enumerate(PROGRAM.read_text().splitlines(), 1) if "# made" in line)
MADE_BYTES = 8 * 16 * 16 * 4


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(200)
def test_weights_are_the_same_bits_and_no_mode_is_left(watched, python) -> None:
    pytest.importorskip("torch")
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    alone, *others = (
        watched.run_without(python, str(PROGRAM), how, env=path, timeout=100)
        for how in ("alone", "recorded", "own_mode")
    )
    assert alone.stdout.endswith("None False\n")
    for end in others:
        assert end.stdout == alone.stdout
        found = json.loads(end.stderr)
        (tensors,) = [row for row in found if row[0] == "tensors" and row[-1] > 1000]
        assert tensors == ["tensors", str(PROGRAM), MADE, tensors[3], MADE_BYTES]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(200)
def test_allocations_are_recorded_where_no_name_leads_to_what_grows(watched, python) -> None:
    pytest.importorskip("torch")
    end = watched.run(
        python,
        str(PROGRAM),
        "probe",
        str(watched.directory),
        env={ring_format.EXPLAIN_VARIABLE: "always"},
        timeout=150,
    )
    assert (end.returncode, end.stderr) == (0, "")
    (file,) = watched.directory.glob("*.holders")
    rows = json.loads(file.read_text())["allocated"]
    assert ("tensors", MADE, MADE_BYTES) in [(row[0], row[2], row[-1]) for row in rows]


def test_what_python_allocates_and_keeps_is_attributed_to_its_line(users) -> None:
    kept, recording = [], AllocationRecording(1.0, is_host=True, is_device=False)
    line = sys._getframe().f_lineno + 2
    while not recording.is_closed:
        kept.append(bytes(20_000))
        recording.at_step()
    kind, file, number, _, size = recording.found[0]
    assert (kind, file, number) == ("native", HERE, line)
    assert size == pytest.approx(20_033, rel=0.05)
    assert len(kept) <= 8
    assert not tracemalloc.is_tracing()


def test_traces_of_the_program_are_its_own(users) -> None:
    tracemalloc.start()
    try:
        recording = AllocationRecording(1.0, is_host=True, is_device=False)
        recording.close()
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_a_step_that_takes_too_long_ends_it(users, monkeypatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr(allocation_recording, "thread_time", lambda: now_s[0])
    recording = AllocationRecording(0.1, is_host=True, is_device=False)
    recording.at_step()
    assert not recording.is_closed
    now_s[0] += 0.7
    recording.at_step()
    assert recording.is_closed
    assert recording.found == []
    assert not tracemalloc.is_tracing()


def test_another_thread_ends_what_takes_too_much_memory(users, monkeypatch) -> None:
    recording = AllocationRecording(1.0, is_host=True, is_device=False)
    monkeypatch.setattr(allocation_recording, "_MOST_TRACE_BYTES", 0)
    recording.check()
    assert not tracemalloc.is_tracing()
    recording.at_step()
    assert recording.is_closed


@pytest.mark.torch
def test_storages_that_are_freed_are_forgotten_meanwhile(users) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch._dynamo.utils")
    recorder = Tensors(lambda: False)
    try:
        kept = [torch.zeros(100) for _ in range(500)]
        for _ in range(5000):
            torch.zeros(100)
        assert len(recorder._storages) < 700
        assert sum(recorder.in_use().values()) >= sum(one.nbytes for one in kept)
    finally:
        recorder.close()


class Device:
    """torch with a GPU, whose allocator can record its history."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: list[Any] = []
        self.kept = 0
        self.error = error
        self.cuda = SimpleNamespace(memory=self, is_initialized=lambda: True)
        self._C = SimpleNamespace(_cuda_isHistoryEnabled=lambda: bool(self.calls[-1:]))

    def _record_memory_history(self, enabled: str | None = "all", **_: Any) -> None:
        self.calls.append(enabled)

    def _snapshot(self) -> dict[str, Any]:
        if self.error:
            raise self.error
        frame = {"filename": HERE, "line": 7, "name": "train"}
        library = {"filename": "/lib/torch/nn.py", "line": 1, "name": "forward"}
        blocks = [
            {"state": "active_allocated", "size": 4096, "frames": [library, frame]},
            {"state": "inactive", "size": 1 << 30, "frames": [frame]},
            {"state": "active_allocated", "size": 1 << 30},  # from before the recording
        ]
        return {"segments": [{"blocks": blocks[:1] * self.kept + blocks[1:]}]}


def test_a_gpus_history_is_recorded_for_some_steps(users, monkeypatch) -> None:
    device = Device()
    monkeypatch.setitem(sys.modules, "torch", device)
    recording = AllocationRecording(1.0, is_host=False, is_device=True)
    while not recording.is_closed:
        device.kept += 3
        recording.at_step()
    assert recording.found == [("device", HERE, 7, "train", 3 * 4096.0)]
    assert device.calls == ["state", None]


def test_an_error_of_the_history_ends_it(users, monkeypatch) -> None:
    device = Device(RuntimeError("no snapshot"))
    monkeypatch.setitem(sys.modules, "torch", device)
    recording = AllocationRecording(1.0, is_host=False, is_device=True)
    recording.at_step()
    recording.at_step()
    assert recording.is_closed
    assert device.calls == ["state", None]


def test_a_history_of_the_program_is_its_own(users, monkeypatch) -> None:
    device = Device()
    device.calls.append("all")
    monkeypatch.setitem(sys.modules, "torch", device)
    assert AllocationRecording(1.0, is_host=False, is_device=True).is_closed
    assert device.calls == ["all"]


def test_the_history_of_a_snapshot_is_used_and_goes_on(users, monkeypatch) -> None:
    device = Device()
    monkeypatch.setitem(sys.modules, "torch", device)
    monkeypatch.setenv(ring_format.SNAPSHOT_VARIABLE, "0:0:/nowhere")
    snapshot = DeviceSnapshot(SimpleNamespace(note=pytest.fail))
    snapshot.begin(device)
    recording = AllocationRecording(1.0, is_host=False, is_device=True)
    while not recording.is_closed:
        device.kept += 3
        recording.at_step()
    assert recording.found == [("device", HERE, 7, "train", 3 * 4096.0)]
    assert device.calls == ["all"]
    snapshot.close()
    assert device.calls == ["all", None]


PARTS = [
    (owner, name)
    for owner in (AllocationRecording, Tensors, Traces, allocation_recording)
    for name, thing in vars(owner).items()
    if isinstance(thing, types.FunctionType) and name not in ("is_users", "ours")
]


@pytest.mark.torch
@pytest.mark.parametrize(("owner", "name"), PARTS)
def test_a_failure_of_any_part_is_unnoticed(users, monkeypatch, owner, name) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch._dynamo.utils")

    def fails(*_: Any, **__: Any) -> None:
        raise ValueError

    monkeypatch.setattr(guard, "is_foreign", lambda _: False)  # `fails` is ours
    if owner is AllocationRecording and name not in ("is_too_slow", "_compare"):
        pytest.skip("the sampler catches it")
    before = torch.arange(6.0).softmax(0)
    closes = vars(owner).get("close")
    recording: Any = None
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, fails)
        recording = AllocationRecording(1.0, is_host=True, is_device=False)
        recorders = list(recording._recorders)
        for _ in range(7):
            assert torch.equal(torch.arange(6.0).softmax(0), before)
            recording.at_step()
            recording.check()
        recording.close()
    if name == "close":
        for one in recorders:
            if type(one) is owner:
                closes(one)
    assert not tracemalloc.is_tracing()
    assert torch._C._len_torch_dispatch_stack() == 0
