"""Tensors are counted in real torch programs: by device, without a tag, within the budget."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time

import pytest

torch = pytest.importorskip("torch")

from memdiag.capture.probelink.channel import ChannelReader  # noqa: E402
from memdiag.capture.probelink.ring_reader import Kind  # noqa: E402
from memdiag.probe import live_tensors, ring_format, spacing, tensor_sampler  # noqa: E402
from memdiag.probe.live_tensors import TensorCount  # noqa: E402
from memdiag.probe.session import Session  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture
def counted() -> TensorCount:
    count = TensorCount(torch)
    gc.collect()
    count()  # the first look finds out whether there are too many for their bytes
    return count


def test_tensors_and_their_bytes_are_counted(counted) -> None:
    before = counted()
    kept = [torch.zeros(1000) for _ in range(50)]
    after = counted()
    assert after["tensors_cpu"] - before["tensors_cpu"] == 50
    assert after["tensor_bytes"] - before["tensor_bytes"] == 50 * 4000
    del kept
    assert counted()["tensors_cpu"] == before["tensors_cpu"]


def test_views_share_the_bytes_of_their_storage(counted) -> None:
    before = counted()
    whole = torch.zeros(1000)
    views = [whole[i:] for i in range(20)]
    after = counted()
    assert after["tensors_cpu"] - before["tensors_cpu"] == 21
    assert after["tensor_bytes"] - before["tensor_bytes"] == 4000
    del views


def test_parameters_are_tensors_and_subclasses_and_other_devices_are_other(counted) -> None:
    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *_args: object, **_kwargs: object) -> None:
            raise AssertionError("our look ran code of the program's")

    before = counted()
    kept = [torch.nn.Parameter(torch.zeros(2)), torch.zeros(2, device="meta")]
    kept.append(torch.Tensor._make_subclass(Mine, torch.zeros(2)))
    after = counted()
    assert after["tensors_cpu"] - before["tensors_cpu"] == 1
    assert after["tensors_other"] - before["tensors_other"] == 2
    del kept


def test_nodes_of_kept_graphs_are_counted_at_steps(counted) -> None:
    weight = torch.ones(4, requires_grad=True)
    before = counted(at_step=True)["graph_nodes"]
    total = torch.zeros(())
    for _ in range(10):
        total = total + (weight * 2).sum()
    # Of each term the sum, the product and the addition; the weight once.
    assert counted(at_step=True)["graph_nodes"] - before == 3 * 10 + 1
    assert "graph_nodes" not in counted()  # another thread may be at work on it
    del total
    assert counted(at_step=True)["graph_nodes"] == before


def test_graph_without_end_is_not_followed(counted, monkeypatch) -> None:
    monkeypatch.setattr(live_tensors, "MOST_NODES", 20)
    total = torch.zeros((), requires_grad=True)
    for _ in range(30):
        total = total + 1
    assert counted(at_step=True)["graph_nodes"] == ring_format.ABSENT


def test_views_that_were_changed_in_place_are_left_alone(counted) -> None:
    base = torch.ones(4, requires_grad=True) * 2
    first, _ = base.unbind(0)[:2]
    with torch.no_grad():
        first.add_(1)  # asking where it comes from would raise from here on
    assert counted(at_step=True)["tensors"] > 0


def test_counts_in_a_process_without_tensors_leave_nothing_behind() -> None:
    program = """
import gc, sys, torch
from memdiag.probe.live_tensors import TensorCount
count = TensorCount(torch)
gc.collect()
gc.disable()
assert count()["tensors"] == 0
before = sys.getallocatedblocks()
for _ in range(5):
    count()
print(sys.getallocatedblocks() - before, gc.collect())
"""
    end = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )
    blocks, garbage = map(int, end.stdout.split())
    assert blocks < 500  # one that held all objects had 3,000 at each count
    assert garbage < 100


def test_running_count_follows_every_tensor_between_two_looks(counted) -> None:
    counted(at_step=True)
    before = counted.running()
    kept = [torch.zeros(2) for _ in range(7)]
    kept.append(torch.nn.Parameter(torch.zeros(2)))
    views = [kept[0][:1] for _ in range(3)]
    assert counted.running() - before == 11
    del views
    kept.clear()
    assert counted.running() == before


def test_running_count_is_unknown_until_a_look_and_set_right_by_each() -> None:
    count = TensorCount(torch)
    assert count.running() == ring_format.ABSENT
    looked = count(at_step=True)
    assert count.running() == looked["tensors"]

    def annotated(one: torch.Tensor, other: torch.Tensor) -> None: ...

    del annotated
    assert count(at_step=True)["tensors"] == count.running()


def test_running_count_that_counts_something_else_is_given_up(counted) -> None:
    running = counted.running
    counted(at_step=True)
    for _ in range(2):  # as if the instances did not show in how often the class is referred to
        running.correct(running.referring(), running() + 1000)
    assert running() == ring_format.ABSENT


def test_instances_of_subclasses_are_found_whenever_they_come(counted) -> None:
    class Late(torch.Tensor):
        pass

    before = counted()["tensors"]
    one = torch.Tensor._make_subclass(Late, torch.zeros(2))
    assert counted()["tensors"] - before == 1
    del one
    assert counted()["tensors"] == before
    assert counted()["tensors"] == before


def test_look_runs_no_code_of_foreign_objects(counted) -> None:
    class Lazy:
        @property
        def __class__(self) -> type:
            raise AssertionError("our look ran code of the program's")

    class Odd(type):
        def __hash__(cls) -> int:
            raise AssertionError("our look ran code of the program's")

        def __eq__(cls, other: object) -> bool:
            raise AssertionError("our look ran code of the program's")

    class Strange(metaclass=Odd):
        pass

    kept = [Lazy(), Strange()]
    assert counted() is not None
    del kept


def test_look_is_put_off_inside_a_mode_that_intercepts_tensors(counted) -> None:
    with torch.device("cpu"):
        assert counted() is None
    assert counted() is not None


def test_collector_stays_as_the_program_set_it(counted) -> None:
    gc.disable()
    gc.freeze()
    frozen = gc.get_freeze_count()
    try:
        counted()
        assert not gc.isenabled()
        assert 0 < gc.get_freeze_count() <= frozen
    finally:
        gc.enable()


def test_objects_die_in_the_thread_of_the_program() -> None:
    died_in: list[int] = []

    class Dying:
        def __del__(self) -> None:
            died_in.append(threading.get_ident())

    stop = threading.Event()
    count = TensorCount(torch)

    def look() -> None:
        while not stop.is_set():
            count()

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(3000):
        one = Dying()
        del one
    stop.set()
    thread.join()
    assert set(died_in) == {threading.get_ident()}


def test_share_of_the_time_is_kept(tmp_path, monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(spacing, "monotonic", lambda: now[0])
    monkeypatch.setattr(tensor_sampler, "thread_time", lambda: now[0] and spent[0])
    spent = [0.0]

    def count(*, at_step: bool) -> dict[str, int]:
        spent[0] += 0.05
        return {"tensors_cpu": int(at_step)}

    watch = tensor_sampler.TensorSampler(Session(str(tmp_path)), torch)
    monkeypatch.setattr(watch, "_count", count)
    for tick in range(100_000):
        now[0] = tick / 10
        watch.tick()
        assert spent[0] <= tensor_sampler.CREDIT_S + tensor_sampler.SHARE * now[0] + 1e-9
    assert spent[0] > 0.8 * tensor_sampler.SHARE * now[0]


def test_program_without_tags_is_counted_too(watched) -> None:
    code = (
        "import importlib, time\n"
        "importlib.import_module('_memdiag_probe.tensor_sampler')._AT_LEAST_S = 0.2\n"
        "import torch\n"
        "kept = [torch.zeros(10) for _ in range(30)]\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    with watched.start(sys.executable, "-c", code) as target:
        target.stdout.readline()
        reader = ChannelReader(watched.directory)
        counts: list[int] = []
        while not counts:
            counts = [e.readings["tensors"] for e in reader.drain() if "tensors" in e.readings]
            time.sleep(0.02)
        target.kill()
    assert counts[0] >= 30


def test_process_that_cannot_be_counted_says_why_once(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tensor_sampler, "_AT_LEAST_S", 0.0)
    monkeypatch.setattr(tensor_sampler, "SHARE", 1e9)
    session = Session(str(tmp_path))
    counting = tensor_sampler.TensorSampler(session, torch)
    with torch.overrides.BaseTorchFunctionMode():
        counting.tick()
        counting.tick()
    (note,) = ChannelReader(tmp_path).drain()
    assert note.kind is Kind.NOTE
    assert note.name.startswith("tensors: not counted while a mode")
