"""A place in the program in words: "list `losses`, local variable of main()"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memdiag.values.holders import OBJECTS, REGISTERED, RUNNING, UNREACHED, Holder, Name
from memdiag.values.memory_kind import MemoryKind

_SAID = 60
_OF_MODULES = frozenset(("_modules", "_parameters", "_buffers"))
_OWNED = {
    "attribute": "attribute",
    "closure": "closure variable",
    "default": "default argument",
    "local": "local variable",
}

_CACHES = {"_lru_cache_wrapper": "cache of", "PjitFunction": "programs that JAX compiled for"}


def words(holder: Holder) -> str:
    """What holds the memory, from the innermost name of the program to the outermost."""
    if holder.path[0].kind == UNREACHED:
        return _unreached(holder)
    if holder.path[0].kind == REGISTERED:
        return f"{holder.item_type} objects that callbacks of `{holder.path[0].name}` keep"
    if holder.is_thread:
        return f"threads of `threading` that have not ended: {holder.item_type}"
    if holder.path[0].kind == RUNNING:
        return f"calls of `{holder.path[0].name}()` that have not returned"
    if holder.path[-1].kind == OBJECTS:
        return f"{holder.path[-1].name} objects in {place(holder.path[:-1])}"
    if holder.is_delegating:
        return f"generators of `{holder.path[-1].owner}()` that delegate to each other"
    # (Of a chain the head is named.)
    return f"{_what(holder)} {place(holder.path[: -1 if holder.has_links else None])}"


def place(path: Sequence[Name]) -> str:
    """The names that lead to it: "`losses`, local variable of main()"."""
    root, *rest = _as_written(path)
    held = _root(root)
    if rest:
        call = "()" if _is_generator(root) else ""
        held = f"{_owner(rest)}held by {held} `{root.name}{call}`"
    return f"`{expression(path)}`, {held}"


def _unreached(holder: Holder) -> str:
    name, *rest = holder.path
    way = "the autograd graph and " if holder.kind is MemoryKind.GRAPH else ""
    cycle = f", in a reference cycle through {way}their `{rest[0].name}`" if rest else ""
    return f"{name.name} objects that no name leads to{cycle}"


def _what(holder: Holder) -> str:
    if holder.is_chain and holder.unit == "objects":
        link = f" linked by `{holder.path[-1].name}`" if holder.has_links else ""
        return f"chain of {holder.item_type}{link} at"
    if holder.container in _CACHES:
        return _CACHES[holder.container]
    if holder.unit == "items":
        return holder.container or "container"
    if holder.kind is MemoryKind.GRAPH:
        return f"autograd graph of {holder.item_type}"
    return holder.item_type or "object"


def _as_written(path: Sequence[Name]) -> list[Name]:
    """The path with torch's modules, parameters and buffers as the attributes that they act as."""
    found: list[Name] = []
    for name in path:
        above = found[-1] if found else None
        if name.kind == "key" and above is not None and above.name in _OF_MODULES:
            found[-1] = replace(above, name=name.name)
        else:
            found.append(name)
    return found


def expression(path: Sequence[Name]) -> str:
    """What one writes to reach it, without its middle if that is long."""
    path = _as_written(path)
    text = path[0].name + "".join(map(_part, path[1:]))
    if len(text) > _SAID:  # from the innermost name of the program on
        inner = max(at for at, name in enumerate(path) if name.file or at == 0)
        text = f"{path[0].name}..." + "".join(map(_part, path[max(inner, 1) :])).lstrip(".")
    return text if len(text) <= _SAID else f"{text[: _SAID // 2]}...{text[-_SAID // 2 :]}"


def _part(name: Name) -> str:
    match name.kind:
        case "key":
            return f"[{name.name!r}]"
        case "item":
            return f"[{name.name}]"
        case "inside":
            return f".<{name.name}>"
        case "cache" | "wrapped":
            return ""
        case _:
            return f"[{name.name}]" if name.name.isdigit() else f".{name.name}"


def _owner(rest: Sequence[Name]) -> str:
    """The class or function that the innermost name belongs to, if possible one of the program."""
    named = [name for name in rest if name.kind in _OWNED and name.owner]
    if not named:
        return ""
    name = next((one for one in reversed(named) if one.file), named[-1])
    shown = "" if name is named[-1] else f" `{name.name}`"
    call = "" if name.kind == "attribute" else "()"
    return f"{_OWNED[name.kind]}{shown} of {name.owner}{call}, "


def _root(root: Name) -> str:
    if root.kind == "global":
        return f"global of {root.owner}" if root.owner else "global"
    if root.kind == "inside":
        return "generator" if _is_generator(root) else "unnamed"
    return f"local variable of {root.owner}()" if root.owner else "local variable"


def _is_generator(root: Name) -> bool:
    """Return True for a generator that a loop of the program runs over, without a name."""
    return root.kind == "inside" and bool(root.file)
