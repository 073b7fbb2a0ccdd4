"""The outputs of modules are looked at in one step, by a hook that is removed again."""

from __future__ import annotations

from typing import Any

import pytest

from memdiag.probe.activation_sizes import ActivationSizes

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def network() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))


def hooks() -> int:
    return len(torch.nn.modules.module._global_forward_hooks)


def test_the_sizes_of_outputs_in_one_step() -> None:
    sizes, net, x = ActivationSizes(), network(), torch.randn(16, 8)
    before = hooks()
    assert sizes.is_wanted
    sizes.begin()
    assert sizes.is_open
    result = net(x)
    sizes.end()
    assert (hooks(), sizes.is_open, sizes.is_wanted) == (before, False, False)
    assert torch.equal(result, net(x))
    assert sizes.found == {16 * 32 * 4: ["Linear", "Tanh"], 16 * 4 * 4: ["Linear", "Sequential"]}


def test_programs_that_torch_compiles_get_no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._dynamo.utils

    monkeypatch.setitem(torch._dynamo.utils.counters["frames"], "total", 1)
    sizes, before = ActivationSizes(), hooks()
    sizes.begin()
    assert (hooks(), sizes.is_open, sizes.is_wanted) == (before, False, False)


def test_what_an_output_raises_does_not_reach_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = ActivationSizes()
    sizes.begin()
    monkeypatch.setattr(sizes, "found", None)
    network()(torch.randn(2, 8))
    sizes.end()
