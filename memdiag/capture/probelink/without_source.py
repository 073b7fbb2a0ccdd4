"""What the probe found, without names and source text of the program (`--no-source`)."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from dataclasses import replace

from memdiag.values.holders import (
    Census,
    Holder,
    Name,
    ProbeFindings,
    ProcessHolders,
    SourceLine,
    TensorGroup,
    TypeCount,
)

_NOT_RECORDED = "(not recorded)"
_LIBRARIES = frozenset((*sys.stdlib_module_names, "torch", "numpy", "pandas", "jax", "tensorflow"))
_TYPES = frozenset(
    (*dir(builtins), "Tensor", "Parameter", "ndarray", "deque", "OrderedDict", "_lru_cache_wrapper")
)


def without_source(found: ProbeFindings) -> ProbeFindings:
    """The same places and censuses: kinds, sizes, source files and line numbers, but no names of
    variables, attributes, keys, functions or classes, and no text of lines.
    """
    return replace(
        found,
        holders=tuple(map(_process, found.holders)),
        censuses=tuple(
            replace(one, censuses=tuple(map(_census, one.censuses))) for one in found.censuses
        ),
    )


def _process(one: ProcessHolders) -> ProcessHolders:
    return replace(
        one,
        holders=tuple(map(_holder, one.holders)),
        native=tuple(replace(each, line=_line(each.line)) for each in one.native),
        allocated=tuple(replace(each, line=_line(each.line)) for each in one.allocated),
        activations=(),
    )


def _holder(one: Holder) -> Holder:
    return replace(
        one,
        path=_path(one.path),
        aliases=(),
        item_type=_type(one.item_type),
        hiding_type="",
        container=_type(one.container),
        lines=tuple(map(_line, one.lines)),
        makers=tuple(map(_line, one.makers)),
    )


def _line(one: SourceLine) -> SourceLine:
    return replace(one, code="", function="", receiver="")


def _census(one: Census) -> Census:
    types: dict[str, TypeCount] = {}
    for each in one.types:
        library = each.type.partition(".")[0] if "." in each.type else "builtins"
        name = each.type if library in _LIBRARIES - {"__main__"} else _NOT_RECORDED
        before = types.get(name, TypeCount(type=name, count=0, size_bytes=0))
        types[name] = replace(
            before,
            count=before.count + each.count,
            size_bytes=before.size_bytes + each.size_bytes,
        )
    return replace(one, groups=tuple(map(_group, one.groups)), types=tuple(types.values()))


def _group(one: TensorGroup) -> TensorGroup:
    path = _path(one.path) if one.path else ()
    return replace(one, path=path, type=_type(one.type), inside=_type(one.inside))


def _path(path: Sequence[Name]) -> tuple[Name, ...]:
    return (Name(kind=path[0].kind, name=_NOT_RECORDED),)


def _type(name: str) -> str:
    return name if name in _TYPES else ""
