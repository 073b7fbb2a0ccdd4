"""Follows autograd graphs from their newest nodes on, no deeper than a program can take.

Since torch 2.13 a node keeps the Python object that it gets when `grad_fn` or `next_functions` are
read. Torch frees a chain of nodes in a loop, but one that has such an object within the call that
frees the node before it: some 30,000 of them, one behind the other, are more than a stack of 8 MB
has room for (measured: 220 to 290 bytes a node, on chains of sin, matmul, view and cat), and the
program ends with SIGSEGV when it lets go of the graph. So few are followed, and once a graph was
deeper, only few of its new nodes until it is gone.

Nodes are numbered in the order in which a thread makes them.
"""

from __future__ import annotations

import _thread
import functools
import types
from heapq import heappop, heappush
from itertools import islice
from time import monotonic

from .guard import ours
from .plain_access import inherited_attribute, is_pythons_own
from .tracked_objects import objects_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator
    from typing import Any

# Of the stack of a thread, for each node of the deepest chain that is followed: new nodes of one
# that is deeper come on top, and the program needs room as well. Heuristic.
_STACK_BYTES_PER_NODE = 4096
# glibc gives so much to threads where the stack of the main one has no limit.
_STACK_BYTES = 2 << 20
# Nodes that are followed beside a graph that is too deep, as a multiple; of tensors' own nodes, one
# more multiple is read. Heuristic.
_NEW_NODES = 2
# Looking for what is left of deep graphs takes at most this part of the time.
_CHECKED_PART = 0.01
# Nodes that accumulate gradients have the highest number that there is.
_NO_NUMBER = 1 << 62

# The methods of classes in C, which last as long as the process, by identity.
_numbers: dict[int, Any] = {}


class _DeepGraph:
    """What is known of a graph that was too deep.

    deepest: the identity of the last node that was reached, None without such a graph. spent: how
    many nodes were followed or read since. next_check_s: when to look for that node again, on the
    monotonic clock.
    """

    __slots__ = ("deepest", "next_check_s", "spent")

    def __init__(self) -> None:
        self.deepest: tuple[int, int, int] | None = None
        self.spent, self.next_check_s = 0, 0.0

    def is_there(self) -> bool:
        now_s = monotonic()
        if self.deepest is not None and now_s >= self.next_check_s:
            if not is_there(self.deepest):
                self.deepest, self.spent = None, 0
            self.next_check_s = now_s + (monotonic() - now_s) / _CHECKED_PART
        return self.deepest is not None

    def spend(self, nodes: int, most: int) -> bool:
        self.spent += nodes
        return self.spent <= most * most_levels()


DEEP = _DeepGraph()


def number_of(node: Any) -> int:
    """The number of a node: higher ones were made later. -1 if unknown, and of leaves."""
    try:
        kind = type(node)
        number = _numbers.get(id(kind))
        if number is None:
            number = inherited_attribute(kind, "_sequence_nr")
            if type(number) is not types.MethodDescriptorType:
                return -1
            if is_pythons_own(kind):
                _numbers[id(kind)] = number
        found: int = number(node)
        return found if found < _NO_NUMBER else -1
    except ours(Exception):
        return -1


@functools.lru_cache(maxsize=1)
def most_levels() -> int:
    """How many nodes one behind the other may be followed."""
    return max(1, _stack_bytes() // _STACK_BYTES_PER_NODE)


def identity(node: Any) -> tuple[int, int, int]:
    """What identifies a node without holding it."""
    return id(node), id(type(node)), number_of(node)


def is_there(node: tuple[int, int, int]) -> bool:
    """Return True if the node with this identity still exists."""
    return any(identity(one) == node for one in objects_at({node[0]}, {node[1]}))


def has_deep_graph() -> bool:
    """Return True while a graph that was too deep is still there."""
    return DEEP.is_there()


def may_read_node() -> bool:
    """Return True if the node of one further tensor may be read while a deep graph exists."""
    return not DEEP.is_there() or DEEP.spend(1, _NEW_NODES + 1)


def may_follow(nodes: int) -> bool:
    """Return True if this number of further nodes may be followed while a deep graph exists."""
    return not DEEP.is_there() or DEEP.spend(nodes, _NEW_NODES)


class Descent:
    """Visits nodes from the newest on, each once. Iteration ends where it is cut off.

    is_cut: a node is too far behind those that were added first.
    behind: by the identity of each node that was followed, those right behind it.
    """

    def __init__(self, roots: Iterable[Any] = (), without: Container[int] = ()) -> None:
        """without: identities of nodes that are not visited."""
        self.is_cut = False
        self.behind: dict[int, list[Any]] = {}
        self._without = without
        self._levels: dict[int, int] = {}
        self._todo: list[tuple[int, int, Any]] = []
        self._held: list[Any] = []  # else an address may be used again
        for root in roots:
            self.add(root)

    def add(self, node: Any, after: Any = None) -> None:
        """Visit a node later. after: the one that leads to it."""
        level = 0 if after is None else self._levels[id(after)] + 1
        known = self._levels.get(id(node))
        if known is not None:
            self._levels[id(node)] = max(known, level)
        elif node is not None and id(node) not in self._without:
            self._levels[id(node)] = level
            self._held.append(node)
            number = number_of(node)
            first = -number if number >= 0 else -_NO_NUMBER  # leaves, at once
            heappush(self._todo, (first, len(self._held), node))

    def __iter__(self) -> Iterator[Any]:
        """The nodes. What is behind one is found when the next one is asked for."""
        while self._todo:
            node = heappop(self._todo)[2]
            if self._levels[id(node)] > most_levels():
                self.is_cut = True
                DEEP.deepest = identity(node)
                return
            yield node
            self.behind[id(node)] = behind = [one for one, _ in node.next_functions]
            for one in behind:
                self.add(one, node)

    def levels(self) -> int:
        """How many nodes, one behind the other, were found."""
        return max(self._levels.values(), default=0)


def followed(roots: Iterable[Any], most: int) -> tuple[dict[int, list[Any]], bool]:
    """By the identity of each node behind `roots`, those included, the ones right behind it; and
    whether these are all. Of more than `most` nodes, or too deep ones, the newest are followed.
    """
    kept = list({id(node): node for node in roots}.values())
    first, seen = len(kept), set(map(id, kept))
    behind: dict[int, list[Any]] = {}
    for node in kept:  # the list grows in the loop
        if len(kept) > min(most, most_levels()):
            break
        behind[id(node)] = before = [one for one, _ in node.next_functions]
        for one in before:
            if one is not None and id(one) not in seen:
                seen.add(id(one))
                kept.append(one)
    else:
        return behind, True  # too few to be too deep, and four times as fast
    nodes = Descent(kept[:first])
    number = sum(1 for _ in islice(nodes, most + 1))
    return nodes.behind, not nodes.is_cut and number <= most


def _stack_bytes() -> int:
    """The bytes of the smallest stack that a thread of this process is likely to have."""
    size = _STACK_BYTES
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
        size = soft if soft != resource.RLIM_INFINITY else size
    except ours(Exception):  # not on this system
        pass
    return min(size, _thread.stack_size() or size)
