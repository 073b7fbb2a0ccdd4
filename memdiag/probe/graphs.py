"""Counts autograd's nodes: what a graph keeps shows in no tensor that Python knows of."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# A look at so many takes some 40 ms; graphs of models have a hundredth of it. Chosen.
MOST_NODES = 50_000


def nodes_behind(results: Iterable[Any]) -> int | None:
    """Nodes that the `grad_fn`s `results` lead back to, themselves included.

    None where there are more than MOST_NODES. Follows `next_functions`, torch's public way.
    """
    kept = list({id(node): node for node in results}.values())
    seen = set(map(id, kept))
    for node in kept:  # it grows meanwhile
        if len(kept) > MOST_NODES:
            return None
        for before, _ in node.next_functions:
            if before is not None and id(before) not in seen:
                seen.add(id(before))
                kept.append(before)
    return len(kept)
