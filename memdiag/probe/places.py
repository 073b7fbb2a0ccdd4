"""The places where a program keeps objects: a tree of names, each with the history of its size.

A place is what one writes to reach an object: a global, a local variable, an attribute, an item.
All items of a container are one place, and so are the links of a chain. A place knows numbers and
names only, never an object.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Places in all: 250 B each. A model of 60 layers has some 3,000. Heuristic.
MOST_PLACES = 20_000
# Walks that a history holds; every second one is dropped when there are more. Heuristic.
_MOST_SIZES = 24
# A place that was not found in this many walks is forgotten. Heuristic: locals of functions that
# run now and then.
_FORGOTTEN_AFTER = 8
# The longest name that is kept.
_NAME_CHARACTERS = 120
# Repetitions of up to this many labels are one link of a chain: `.func.args[0]`. Heuristic.
_LONGEST_LINK = 4
# The part of all rises and falls that must be a net rise. Heuristic: a buffer that fills and
# empties has less.
NET_RISE = 0.7

# A place whose size was the same until as many times the walk may be full. Heuristic.
_FULL_FOR = 2

# Of a container and of the containers in its items. Heuristic.
_MANY_TIMES = 2.0

# Of a larger container, some items stand for all. Heuristic.
ALL_ITEMS = 100

ITEM = ("item", "")
# The kind of place that is the objects of a class, somewhere in what leads to it.
OBJECTS = "objects"


class Place:
    """One place, and the places in it.

    kind, name: what one writes: ("attribute", "losses"). owner: the class of the attribute, the
    function of the local variable, the module of the global. file, line: where the owner is
    defined, "" if that is a library. unit: what `sizes` counts: "items" of containers, "bytes" of
    arrays, tensors and text, or "objects". sizes: (number of the walk, size) around each change,
    last_walk: the number of the last one. first_root: the identity of the first node of its graphs
    in it, (0, 0, -1) without one. node_density: of its graphs' nodes among all that were
    made meanwhile. first_object: the identity of the first object at it in that walk.
    type: that of the class of the very first one. is_in_chain: objects at it lead to others at it.
    aliases: other names of the same objects.
    """

    __slots__ = (
        "aliases",
        "children",
        "file",
        "first_object",
        "first_root",
        "is_in_chain",
        "kind",
        "last_walk",
        "line",
        "name",
        "node_density",
        "owner",
        "parent",
        "seen",
        "sizes",
        "type",
        "unit",
    )

    def __init__(self, parent: Place | None, kind: str, name: str) -> None:
        self.parent, self.kind, self.name = parent, kind, name[:_NAME_CHARACTERS]
        self.owner = self.file = self.unit = ""
        self.line = self.seen = self.last_walk = self.first_object = self.type = 0
        self.children: dict[tuple[str, ...], Place] | None = None
        self.sizes: list[tuple[int, float]] = []
        self.first_root = (0, 0, -1)
        self.node_density = 0.0
        self.is_in_chain = False
        self.aliases: tuple[str, ...] = ()

    def is_chain(self) -> bool:
        """Return True if objects at this place refer to others at the same place."""
        return any(child is self or child.holds(self) for child in (self.children or {}).values())

    def holds(self, other: Place) -> bool:
        """Return True if this place is on the way to `other`."""
        above = other.parent
        while above is not None:
            if above is self:
                return True
            above = above.parent
        return False

    def path(self) -> list[Place]:
        """The places on the way, the outermost first, this one included."""
        found = []
        at: Place | None = self
        while at is not None and at.parent is not None:
            found.append(at)
            at = at.parent
        return found[::-1]

    def measured(self, walk: int, unit: str, size: float) -> None:
        """Its size at walk number `walk`."""
        before, self.last_walk = self.last_walk, walk
        if unit != self.unit:
            self.unit, self.sizes = unit, []
        if not self.sizes or self.sizes[-1][1] != size:
            if self.sizes and self.sizes[-1][0] != before:
                self.sizes.append((before, self.sizes[-1][1]))  # until then it did not change
            self.sizes.append((walk, size))
            if len(self.sizes) > _MOST_SIZES:
                del self.sizes[1:-1:2]

    def grows(self) -> bool:
        """Return True if it rose at least twice, and is larger than ever."""
        sizes = [size for _, size in self.sizes]
        steps = [after - before for before, after in zip(sizes, sizes[1:])]
        rises = sum(1 for step in steps if step > 0)
        if rises < 2 or sizes[-1] < max(sizes) or sizes[-1] - sizes[0] < 2:
            return False
        return sum(steps) >= NET_RISE * sum(map(abs, steps))

    def is_full(self) -> bool:
        """Return True if it has had the same size for half of the walks or more."""
        return bool(self.sizes) and self.last_walk >= _FULL_FOR * self.sizes[-1][0]


class Places:
    """The tree of places."""

    def __init__(self) -> None:
        self.root = Place(None, "", "")
        # Items of a large container that a walk visits beside the oldest and the newest.
        self.more_items = 0
        self._count = 0
        self._always: set[tuple[int, int]] | None = None

    @property
    def is_full(self) -> bool:
        """Return True if there is no room for further places."""
        return self._count >= MOST_PLACES

    def keep_running(self, calls: set[tuple[int, int]]) -> set[tuple[int, int]]:
        """Of the calls that run at a walk (identities of frames and code), those that ran at each
        walk before.
        """
        self._always = calls if self._always is None else self._always & calls
        return self._always

    def child(
        self, place: Place, label: tuple[str, ...], about: Any = None, kind: type | None = None
    ) -> Place:
        """The place `label` in `place`. A chain leads back to its first link.

        label: its kind and name, and what else tells it from others. about: called once, for a new
        place, gives its (owner, file, line). kind: the class of the object at it.
        """
        children = place.children
        if children is None:
            children = place.children = {}
        found = children.get(label)
        if found is None:
            if self.is_full:
                return place
            new = Place(place, label[0], label[1])
            new.type = id(kind)
            if about is not None:
                new.owner, new.file, new.line = about()
            found = _first_link(new)
            if found is None:
                self._count += 1
                found = new
            else:
                _close_chain(found, place)
            children[label] = found
        return found

    def visit_more_items(self, count: int) -> None:
        """Visit `count` further items of large containers from now on, and forget what was
        estimated from another number of items.
        """
        self.more_items = count
        todo = [(child, False) for child in _own_children(self.root)]
        while todo:
            place, is_in_item = todo.pop()
            if is_in_item:
                place.sizes = []
            is_in_item = is_in_item or (_label(place) == ITEM and not _has_few(place.parent))
            todo += [(child, is_in_item) for child in _own_children(place)]

    def forget(self, walk: int) -> None:
        """Drop the places that no recent walk has found; those that grew until then, later."""
        if self._count:
            self._count -= _pruned(self.root, walk - _FORGOTTEN_AFTER, walk // 2)

    def growing(self) -> list[Place]:
        """The places that grow, except those within one that does."""
        return list(_growing_in(self.root))


def _first_link(new: Place) -> Place | None:
    """The place that a new one repeats with the same class, None if it repeats none.

    A variable of another function is another one.
    """
    above: list[Place] = []
    at = new.parent
    while at is not None and at.parent is not None and len(above) < 2 * _LONGEST_LINK:
        above.append(at)
        at = at.parent
    labels = [_label(one) for one in (new, *above)]
    for length in range(1, _LONGEST_LINK + 1):
        repeated = labels[:length] == labels[length : 2 * length]
        # A list of lists is not a chain.
        is_named = any(one != ITEM for one in labels[:length])
        if repeated and is_named and above[length - 1].type == new.type:
            return above[length - 1]
    return None


def _label(place: Place) -> tuple[str, ...]:
    is_local = place.kind == "local"
    return (place.kind, place.name, place.owner) if is_local else (place.kind, place.name)


def _close_chain(first: Place, last: Place) -> None:
    """Objects at `last` lead to others at `first`, which is the same place or one above it."""
    at: Place | None = last
    while at is not None:
        at.is_in_chain = True
        at = None if at is first else at.parent


def _has_few(container: Place | None) -> bool:
    """Return True if all items of a container are visited in each walk."""
    sizes = [] if container is None or container.unit != "items" else container.sizes
    return bool(sizes) and sizes[-1][1] <= ALL_ITEMS


def _own_children(place: Place) -> list[Place]:
    return [child for child in (place.children or {}).values() if child.parent is place]


def _pruned(root: Place, oldest: int, oldest_growing: int) -> int:
    """Drop the places below `root` that were last found before walk `oldest`; how many. Those that
    grow if they were last found before walk `oldest_growing`, too.
    """
    dropped, todo = 0, [root]
    while todo:
        place = todo.pop()
        for label, child in list((place.children or {}).items()):
            if child.parent is not place:
                continue
            is_old = child.seen < oldest
            if is_old and (child.seen < oldest_growing or not _has_grown(child)):
                dropped += _emptied(child)
                del place.children[label]  # type: ignore[union-attr]
            else:
                todo.append(child)
    return dropped


def _growing_in(root: Place) -> Iterator[Place]:
    """The places within `root` that grow, except those within one that does. Where an array of
    objects grows, so does what says how much memory the array has, and not what its items have; and
    where a container gets a few items, and those it has get many, it is these that grow. Within one
    that is full, those that are not.
    """
    todo = [(root, False)]
    while todo:
        place, is_in_full = todo.pop()
        for child in _own_children(place):
            has_items = _has_items if child.unit == "bytes" else _grows_in_items
            is_by_items = bool(child.unit) and has_items(child)
            is_growing = bool(child.unit) and child.grows() and not is_by_items
            is_full = is_growing and child.is_full()
            if is_growing and not (is_full and is_in_full):
                yield child
            if is_full or not is_growing:
                todo.append((child, is_in_full or is_full))


def _grows_in_items(place: Place) -> bool:
    """Return True if containers in its items, chains that begin there, or the number of objects of
    a class in them, grow many times as much as it does."""
    todo = _own_children(place)
    for one in todo:  # the list grows in the loop
        if one.unit != "items" and one.kind != OBJECTS and not one.is_in_chain:
            todo += _own_children(one)
        elif one.grows() and _growth(one, one) > _MANY_TIMES * _growth(place, one):
            return True
    return False


def _growth(place: Place, since: Place) -> float:
    """How many times as large a place is as when the other was first measured."""
    before = [size for walk, size in place.sizes if walk <= since.sizes[0][0]]
    first = before[-1] if before else place.sizes[0][1]
    return place.sizes[-1][1] / max(1.0, first)


def _has_items(place: Place) -> bool:
    """Return True if a container right in it grows."""
    return any(one.unit == "items" and one.grows() for one in _own_children(place))


def _has_grown(place: Place) -> bool:
    """Return True if a place, or one within it, grows."""
    return bool(place.unit and place.grows()) or any(True for _ in _growing_in(place))


def _emptied(place: Place) -> int:
    """Empty a place and all in it; how many they were. They refer to each other, and would stay as
    garbage until a full collection, for which what the probe makes does not count."""
    count, todo = 0, [place]
    while todo:
        one = todo.pop()
        count += 1
        todo += _own_children(one)
        one.children = None
    return count
