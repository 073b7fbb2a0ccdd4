"""How full the buffers and caches are that a log mentions: `replay 620/1000`, or a column
`replay/size` beside one `replay/capacity` that is constant. A replay buffer has a capacity also
where the log does not say it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from memdiag.recording.parsing.cells import to_numbers
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.column_names import Name, take_apart
from memdiag.recording.parsing.column_vocabulary import STORES
from memdiag.recording.tables.table import Table
from memdiag.values.measurements import FillLevel, Series
from memdiag.values.sanitize import printable

_CAPACITIES = (("capacity",), ("cap",), ("max", "size"), ("maxsize",), ("maxlen",), ("size", "max"))
_COUNTS = ((), ("size",), ("len",), ("length",), ("count",), ("items",), ("entries",))
# What has a number of these beside their most, `entries=843 max_entries=50000`, holds no more.
_ITEMS = frozenset({"entries", "items", "keys", "elements", "objects", "records", "documents"})
_MOST = frozenset({"max", "maximum", "limit", "capacity", "cap"})
_LEVELS = (("info",), ("debug",), ("warn",), ("warning",))
# Of a cache, by what it has in use.
_TOTALS = (("total",), ("limit",), ("max",), ("maximum",), *_CAPACITIES)
_IN_USE = (("used",), ("usage",), ("in", "use"), ("size",))
_CACHE = "cache"
# The most that Redis and memcached use for their entries; 0 means no limit.
_OF_SERVERS = {"maxmemory": "used_memory", "limit_maxbytes": "bytes"}
_REPLAY = "replay"
_COLUMNS_AT_MOST = 1000


def fill_levels(table: Table, series: Sequence[Series]) -> tuple[FillLevel, ...]:
    """What fills up in a table of one process, with the positions of its series."""
    if not series or any(len(one.x) != len(table) for one in series):
        return ()
    found = []
    stated = dict([*_stated(table), *_beside(table)])
    for at, capacity in (dict.fromkeys(_of_replay(table), math.inf) | stated).items():
        items = to_numbers(table.columns[at]).values
        there = items[np.isfinite(items)]
        if there.size and there.max() <= capacity:
            name = printable(table.names[at])
            found.append(FillLevel(name=name, x=series[0].x, items=items, capacity=capacity))
    return tuple(found)


def _stated(table: Table) -> Iterator[tuple[int, float]]:
    """The columns whose numbers stand before their capacity, and that."""
    for at, name in enumerate(table.names):
        if name in table.totals and recognise(name).part is Part.OTHER:
            yield at, table.totals[name]


def _beside(table: Table) -> Iterator[tuple[int, float]]:
    """The columns of numbers of items, or of what a cache has in use, and the constant of their
    capacity in another column.
    """
    named = list(map(_without_level, table.names[:_COLUMNS_AT_MOST]))
    items = {name.words: at for at, name in enumerate(named)}
    amounts = {(name.words, name.bytes_per_unit): at for at, name in enumerate(named)}
    for at, name in enumerate(named):
        counts = [
            items.get((*owner, *one)) for owner in _owners(name, _CAPACITIES) for one in _COUNTS
        ]
        counts += [
            amounts.get(((*owner, *one), name.bytes_per_unit))
            for owner in _owners(name, _TOTALS)
            for one in _IN_USE
            if _CACHE in owner
        ]
        counts += [items.get(rest) for rest in _without_most(name)]
        used = _OF_SERVERS.get(table.names[at])
        counts += [table.names.index(used)] if used in table.names else []
        count = next((n for n in counts if n is not None), None)
        if count is None:
            continue
        values = to_numbers(table.columns[at]).values
        values = np.unique(values[np.isfinite(values)])
        if values.size == 1:
            yield count, float(values[0])


def _of_replay(table: Table) -> Iterator[int]:
    """The columns of how many items are in a replay buffer: `replay_size`, `len(replay)`."""
    for at, name in enumerate(table.names[:_COLUMNS_AT_MOST]):
        words = take_apart(name).words
        is_number = set(words) <= STORES or any(words[-len(one) :] == one for one in _COUNTS[1:])
        if _REPLAY in words and is_number and recognise(name).part is Part.OTHER:
            yield at


def _without_level(name: str) -> Name:
    """The name, without the level of a log in front: `INFO cache_size=843`."""
    apart = take_apart(name)
    return replace(apart, words=apart.words[1:]) if apart.words[:1] in _LEVELS else apart


def _without_most(name: Name) -> Iterator[tuple[str, ...]]:
    """`cache entries` for `cache max entries` or `cache entries limit`."""
    rest = tuple(word for word in name.words if word not in _MOST)
    if len(rest) == len(name.words) - 1 and rest[-1:] and rest[-1] in _ITEMS:
        yield rest


def _owners(name: Name, endings: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """What a name with one of these endings is of, if that fills up."""
    for ending in endings:
        owner = name.words[: -len(ending)]
        if name.words[-len(ending) :] == ending and not STORES.isdisjoint(owner):
            yield owner
