"""Graphs are followed without harm to the program that frees them later."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.torch

# Torch frees chains of any length in a loop, unless their nodes have Python objects.
PROGRAM = """
import sys, torch
from memdiag.probe.kept_bytes import Arrays, Kept, of_object
from memdiag.probe.live_tensors import TensorCount
from memdiag.probe.name_walk import NameWalk
from memdiag.probe.places import Places

looks, links = int(sys.argv[1]), int(sys.argv[2])
weight = torch.ones(1, requires_grad=True)
count, places = TensorCount(torch), Places()
state, outputs = weight * 1, []
for number in range(1, looks + 1):
    for _ in range(links):
        state = torch.cat([state, state])[:1]
    outputs.append(state)
    readings = count(at_step=True)
    walk, nodes = NameWalk(places, Arrays()), set()
    walk.run()
    for place, found in walk.found.items():
        found.set_size_of(place, number, nodes)
    del walk, place, found
    Kept(Arrays()).add(state)
    of_object(state, Arrays(), first_bytes=0.0)
print("nodes", readings.get("graph_nodes", -1))
del state, outputs
print("freed", flush=True)
"""


@pytest.mark.parametrize(("looks", "links"), [(1, 60_000), (40, 1000)])
def test_a_deep_graph_that_was_looked_at_can_be_freed(looks: int, links: int) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, "-c", PROGRAM, str(looks), str(links)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stdout) == (0, "nodes -1\nfreed\n"), ended.stderr
