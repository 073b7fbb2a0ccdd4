"""The findings of one recording, and the checks that hold them against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from memdiag.analysis.decision.across import allocator_metrics
from memdiag.analysis.decision.case import Says
from memdiag.analysis.policy import Policy
from memdiag.values.findings import Finding
from memdiag.values.measurements import Role
from memdiag.values.verdict import CALM, Argument, Side

P = TypeVar("P")

MALLOC, PYTHON_BLOCKS = "malloc_bytes", "python_blocks"
IN_PART = frozenset({"tensor_bytes", "jax_array_bytes"})
"""Memory in use, but a part of it: that it is calm says nothing of the rest."""
COUNTS = frozenset({Role.TENSORS, Role.OBJECTS, Role.PROCESSES, Role.COUNTER})
"""Roles that count things and not memory: they explain, and decide only where nothing else can."""
# Counts of tensors that are not in a subject's memory: {subject is on a device: metrics}.
ELSEWHERE = {
    True: ("tensors_cpu", "tensors_other"),
    False: ("tensors_cuda", "tensors_gpu", "tensors_other", "vram_allocations", "xpu_allocations"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meters:
    """The findings of one recording. ended: processes of a tree that were gone before its end."""

    findings: Sequence[Finding]
    policy: Policy
    ended: frozenset[str] = frozenset()

    def same(self, finding: Finding) -> list[Finding]:
        """The findings that tell of the same memory, itself included."""
        return [f for f in self.findings if self.is_same(finding, f)]

    def is_same(self, subject: Finding, other: Finding) -> bool:
        """Whether two series tell of the same memory: of one process, or of a tree in which only
        one process has such a series."""
        if not allocator_metrics.one_source(subject, other):
            return False
        if subject.process == other.process:
            return True
        alike = {f.process for f in self.findings if f.metric == other.metric}
        return subject.process == "tree" and alike == {other.process}

    def is_on_host(self, tensors: Finding) -> bool:
        """What is known of tensors, none of which come and go on a device: malloc knows all of
        them."""
        return tensors.metric in IN_PART and all(
            f.verdict in CALM
            for f in self.findings
            if f.process == tensors.process and f.metric in ELSEWHERE[False]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cross(Generic[P]):
    """One argument that the other series of a recording can make about a finding. ask: gets the
    finding, all of them, and the parameters; returns None where it has nothing to say. change: the
    finding as it becomes; None where its verdict alone changes."""

    name: str
    ask: Callable[[Finding, Meters, P], Says | None]
    parameters: P
    change: Callable[[Finding, Meters, P], Finding] | None = None


def first(
    checks: Sequence[Cross[Any]], finding: Finding, meters: Meters
) -> tuple[Cross[Any], Argument] | None:
    """The first of the checks that has something to say of the finding."""
    for check in checks:
        if check.name in meters.policy.off:
            continue
        says = check.ask(finding, meters, parameters(check, meters.policy))
        if says is not None:
            return check, says.argument(check.name, Side.ACROSS, is_decisive=True)
    return None


def parameters(check: Cross[P], policy: Policy) -> Any:
    """Those of the policy, else the check's own."""
    return policy.checks.get(check.name, check.parameters)


def corrected(finding: Finding, checks: Sequence[Cross[Any]], meters: Meters) -> Finding:
    """The finding as the first check that has something to say of it leaves it."""
    found = first(checks, finding, meters)
    if found is None:
        return finding
    check, argument = found
    if check.change is None:
        finding = replace(finding, verdict=argument.verdict, reason=argument.reason)
    else:
        finding = check.change(finding, meters, parameters(check, meters.policy))
        argument = replace(argument, verdict=finding.verdict, reason=finding.reason)
    before = tuple(replace(a, is_decisive=False) for a in finding.trail)
    return replace(finding, trail=(*before, argument))


def speed(finding: Finding) -> float:
    """Growth per second where there is a clock, else per unit of the axis."""
    growth = finding.growth_per_s or finding.growth_per_x
    return 0.0 if growth is None else growth.value


def name(finding: Finding) -> str:
    """A series as "process metric"."""
    return f"{finding.process} {finding.metric}".strip()
