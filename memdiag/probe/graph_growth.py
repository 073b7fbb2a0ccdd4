"""How much an autograd graph has grown that is too large to count.

The newest nodes are counted, from the roots on, and those before them are as dense.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import islice, takewhile

from .graph_descent import (
    Descent,
    has_deep_graph,
    is_there,
    may_follow,
    most_levels,
    number_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

    from .places import Place

# Nodes that are counted, and beside a graph that is too deep: 3 us each. Heuristic.
_MOST_COUNTED, _MOST_BESIDE_DEEP = 2000, 200


def nodes_since(roots: Sequence[Any], place: Place, counted: set[int]) -> float | None:
    """About how many nodes behind `roots`, the nodes of the tensors at a place, are newer than its
    first one was in the walk before. None if that is not known, or if that node is not behind them:
    then it is another graph. Beside a graph that is too deep, it is taken to be behind them as long
    as it is there.

    counted: the numbers of nodes that count for other graphs; those of this one are added.
    """
    before, is_deep = place.first_root[2], has_deep_graph()
    if before < 0:
        return None
    newest, most = max(map(number_of, roots)), _MOST_BESIDE_DEEP if is_deep else _MOST_COUNTED
    is_all = may_follow(0)
    nodes = Descent(roots if is_all else ())
    numbers = filter(lambda number: number >= 0, map(number_of, nodes))
    found = list(islice(takewhile(lambda number: number >= before, numbers), most))
    may_follow(nodes.levels())
    if found[-1:] == [before]:
        del found[-1]
    elif len(found) == most or nodes.is_cut or not is_all:
        is_all = False
        if not (is_there(place.first_root) if is_deep else _leads_to(roots[0], before)):
            return None
    else:
        return None
    new = len(set(found) - counted)
    counted.update(found)
    if found:
        place.node_density = new / (newest - found[-1] + 1)
    return float(new) if is_all else place.node_density * (newest - before)


def _leads_to(root: Any, wanted: int) -> bool:
    """Return True if node number `wanted` is behind `root`. The oldest nodes that are newer come
    first, since a graph that is continued at each step has few of them on the way.
    """
    todo = [(number_of(root), root)]
    seen = {todo[0][0]}
    for _ in range(most_levels()):
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
