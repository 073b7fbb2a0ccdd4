"""The state of an optimizer counts for the groups of parameters that it was made for.

`torch.optim.Optimizer.step` makes the state of a parameter when it first sees a gradient of it:
state grows at that line, because of the line that adds a group of parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memdiag.values.holders import Holder, Name
from memdiag.values.memory_kind import MemoryKind

_STATE, _GROUPS = "state", "param_groups"

_Growing = tuple[Holder, float]
"""A place, and its growth per unit of the axis."""


def with_state(grown: Sequence[_Growing]) -> list[_Growing]:
    """The places that grow, of which the groups of an optimizer keep what its state does."""
    groups = {_owner(holder, _GROUPS) for holder, _ in grown} - {()}
    states = {owner: one for one in grown if (owner := _owner(one[0], _STATE)) in groups}
    kept = [one for one in grown if one not in states.values()]
    return [
        (_and_state(holder, per_x, *states[owner]), per_x)
        if (owner := _owner(holder, _GROUPS)) in states
        else (holder, per_x)
        for holder, per_x in kept
    ]


def _owner(holder: Holder, attribute: str) -> tuple[Name, ...]:
    """The names that lead to the object whose attribute this is; () if it is not one."""
    *owner, last = holder.path
    return tuple(owner) if last.kind == "attribute" and last.name == attribute else ()


def _and_state(groups: Holder, per_x: float, state: Holder, state_per_x: float) -> Holder:
    """Groups of which one more keeps its part of the state."""
    part = state_per_x / per_x
    return replace(
        groups,
        bytes_per_unit=groups.bytes_per_unit + part * state.bytes_per_unit,
        device_bytes_per_unit=groups.device_bytes_per_unit + part * state.device_bytes_per_unit,
        is_estimated=groups.is_estimated or state.is_estimated,
        kind=state.kind if state.kind is not MemoryKind.PYTHON_OBJECTS else groups.kind,
    )
