"""How much an autograd graph has grown that is too large to count.

Nodes are numbered in the order in which a thread makes them. So the newest ones are counted, from
the roots on, and those before them are as dense.
"""

from __future__ import annotations

import types
from heapq import heapify, heappop, heappush

from .guard import ours
from .plain_access import inherited_attribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

# Nodes that are counted, and visited on the way to an older one: 3 us each. Heuristic.
_MOST_COUNTED, _MOST_VISITED = 2000, 15_000
# Nodes that accumulate gradients have the highest number that there is.
_NO_NUMBER = 1 << 62


def number_of(node: Any) -> int:
    """The number of a node: higher ones were made later. -1 if unknown, and of leaves."""
    try:
        number = inherited_attribute(type(node), "_sequence_nr")
        found = number(node) if type(number) is types.MethodDescriptorType else -1
        return int(found) if found < _NO_NUMBER else -1
    except ours(Exception):
        return -1


def nodes_since(roots: Sequence[Any], before: int, counted: set[int]) -> float | None:
    """About how many nodes behind `roots` are newer than node number `before`, None if that is not
    known, or if that node is not behind the first of them: then it is another graph.

    before: the number that the first root had at that time. counted: the numbers of nodes that
    count for other graphs; those of this one are added.
    """
    if before < 0 or not _leads_to(roots[0], before):
        return None
    newest = max(map(number_of, roots))
    found: list[int] = []
    for number in _newest_first(roots):
        if number <= before or len(found) == _MOST_COUNTED:
            break
        found.append(number)
    new = len(set(found) - counted)
    counted.update(found)
    is_part = len(found) == _MOST_COUNTED
    return new * (newest - before) / (newest - found[-1] + 1) if is_part else float(new)


def _newest_first(roots: Sequence[Any]) -> Iterator[int]:
    """The numbers of the nodes behind `roots`, the highest first."""
    seen = {number_of(root): root for root in roots}  # (a node may get another address later)
    todo = [(-number, root) for number, root in seen.items()]
    heapify(todo)
    while todo:
        number, node = heappop(todo)
        yield -number
        for number, one in _numbered(node):
            if number not in seen:
                seen[number] = None
                heappush(todo, (-number, one))


def _leads_to(root: Any, wanted: int) -> bool:
    """Return True if node number `wanted` is behind `root`. The oldest nodes that are newer come
    first, since a graph that is continued at each step has few of them on the way.
    """
    todo = [(number_of(root), root)]
    seen = {todo[0][0]}
    for _ in range(_MOST_VISITED):
        if not todo:
            break
        number, node = heappop(todo)
        if number == wanted:
            return True
        for number, one in _numbered(node):
            if number >= wanted and number not in seen:
                seen.add(number)
                heappush(todo, (number, one))
    return False


def _numbered(node: Any) -> Iterator[tuple[int, Any]]:
    """The nodes that a node leads to and that have a number, with it."""
    for one, _ in node.next_functions:
        number = -1 if one is None else number_of(one)
        if number >= 0:
            yield number, one
