"""Interventions free memory after a step, in the main thread, and record what came back."""

from __future__ import annotations

import pytest

from memdiag.probe import ring_format

TRAINING = """
import gc, sys, threading, time, numpy
gc.disable()
session = sys.modules["_memdiag_probe"].listener
class Node:
    pass
def steps(seconds):
    n, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        node = Node()
        node.me, node.data = node, numpy.ones(20_000)
        session.step(n)
        n += 1
        time.sleep(0.005)
"""
ON = {ring_format.INTERVENE_VARIABLE: "1"}


def done(watched):
    watched.events()
    return [one for process in watched.reader.interventions(0.0) for one in process.done]


def test_cycles_come_back_by_a_collection_and_are_measured_exactly(watched, python: str) -> None:
    pytest.importorskip("numpy")
    ended = watched.run(python, "-c", TRAINING + "steps(4)\nprint('end')", env=ON)
    assert (ended.stdout, ended.stderr) == ("end\n", "")
    by_action = {one.action: one for one in done(watched)}
    assert set(by_action) == {"malloc_trim", "gc_collect"}
    collected = by_action["gc_collect"]
    assert collected.step is not None
    freed = collected.before["malloc_bytes"] - collected.after["malloc_bytes"]
    assert freed == pytest.approx(160_000 * collected.step, rel=0.2)
    assert collected.took_s > 0


def test_only_on_request(watched, python: str) -> None:
    pytest.importorskip("numpy")
    watched.run(python, "-c", TRAINING + "steps(3)")
    assert done(watched) == []


def test_not_in_another_thread_than_the_main_one(watched, python: str) -> None:
    pytest.importorskip("numpy")
    program = TRAINING + "t = threading.Thread(target=steps, args=(3,)); t.start(); t.join()"
    ended = watched.run(python, "-c", program, env=ON)
    assert ended.stderr == ""
    notes = [event.name for event in watched.events() if "interventions: none" in event.name]
    assert len(notes) == 1
    assert [one for one in watched.reader.interventions(0.0) if one.done] == []


def test_where_the_thread_of_the_probe_counts_the_steps(watched, any_python, tmp_path) -> None:
    (tmp_path / "numpy.py").write_text("ndarray = int\n")
    program = """
import numpy, time
def main():
    until = time.monotonic() + 9
    for n in range(100_000):
        time.sleep(0.01)
        if time.monotonic() > until:
            break
main()
"""
    env = {**ON, "PYTHONPATH": str(tmp_path)}
    ended = watched.run(any_python, "-c", program, env=env)
    assert ended.stderr == ""
    assert {one.action for one in done(watched)} == {"malloc_trim", "gc_collect"}


@pytest.mark.torch
@pytest.mark.slow
def test_training_computes_the_same_with_interventions_and_censuses(watched, python: str) -> None:
    pytest.importorskip("torch")
    program = """
import time, torch
torch.manual_seed(3)
net = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Linear(50, 1))
opt = torch.optim.Adam(net.parameters())
losses = []
for step in range(900):
    loss = net(torch.randn(16, 20)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss)
    time.sleep(0.005)
print([float(p.detach().double().sum()).hex() for p in net.parameters()])
"""
    alone = watched.run_without(python, "-c", program)
    both = {**ON, ring_format.CENSUS_VARIABLE: "1"}
    ended = watched.run(python, "-c", program, env=both)
    assert (ended.stdout, ended.stderr) == (alone.stdout, alone.stderr)
    assert done(watched)
    assert watched.reader.censuses(0.0)
