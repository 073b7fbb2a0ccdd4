"""The processes of a job as a tree by parent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_TREE = "tree"
_STEP = "\N{EM SPACE}"  # a browser shows it, unlike several blanks
_BRANCH = "\N{BOX DRAWINGS LIGHT UP AND RIGHT} "
_DEEPEST = 8


def ordered(labels: Sequence[str], known: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The processes in `labels` with their depth, each after its parent, the whole job first.

    labels: of processes with readings. known: what the recording says of each label (untrusted),
    with `pid` and `parent_pid` where they are known. A process whose parents have no readings is
    below the nearest one that has.
    """
    depths = dict.fromkeys((label for label in labels if label == _TREE), 0)
    top = len(depths)
    labels_of = {one["pid"]: label for label, one in known.items() if type(one.get("pid")) is int}
    below: dict[str, list[str]] = {}
    for label in labels:
        above = (one for one in _above(label, known, labels_of) if one in labels)
        below.setdefault(next(above, ""), []).append(label)
    # Those that are reached from nowhere come last: a damaged recording has a circle of parents.
    todo = [(label, top) for label in (*below.get("", ()), *labels)][::-1]
    while todo:
        label, depth = todo.pop()
        if label not in depths:
            depths[label] = depth
            todo += [(child, depth + 1) for child in below.get(label, ())[::-1]]
    return depths


def indented(name: str, depth: int) -> str:
    """A name below that of its parent."""
    return f"{_STEP * (min(depth, _DEEPEST) - 1)}{_BRANCH}{name}" if depth else name


def _above(
    label: str, known: Mapping[str, Mapping[str, Any]], labels_of: Mapping[int, str]
) -> Iterator[str]:
    """Labels of the parent, its parent, and so on."""
    seen = {label}
    while True:
        pid = known.get(label, {}).get("parent_pid")
        label = labels_of.get(pid, "") if type(pid) is int else ""
        if not label or label in seen:
            return
        seen.add(label)
        yield label
