"""Follows the sizes of the places that grow at steps between the walks, through their names.

It says since when a place grows, and whether it has ended. Nothing is kept but numbers: a place
that the program drops, or that is held under another name, has no more readings.
"""

from __future__ import annotations

from time import monotonic

from .kept_bytes import Arrays
from .known_places import KnownPlacesWalk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .places import Place, Places
    from .unnamed import Unnamed

# Readings that are kept of a place; every second one is dropped when there are more. Heuristic.
_MOST_READINGS = 40
# Places that are followed, the ones with the most growth. Heuristic.
_MOST_PLACES = 8
# Two ways to one size agree within this. Heuristic: other threads add meanwhile.
_AGREES = 0.01


class SizeLog:
    """The readings of one process."""

    def __init__(self, places: Places, unnamed: Unnamed) -> None:
        self._places, self._unnamed = places, unnamed
        self._followed: list[Place] = []
        self._readings: dict[Place, list[tuple[int, float, float]]] = {}

    def follow(self, growing: list[Place]) -> None:
        """Follow these places, the ones with the most growth first, from now on.

        A place whose size is another one through its name than in the walk is not followed.
        """
        known = self._readings
        wanted = [place for place in growing if place.unit != "objects"][:_MOST_PLACES]
        sizes = self._sizes(wanted) if wanted else {}
        self._followed = [
            place
            for place in wanted
            if place in sizes
            and abs(sizes[place] - place.sizes[-1][1]) <= _AGREES * place.sizes[-1][1] + 1
        ]
        self._readings = {place: known.get(place, []) for place in self._followed}

    def read(self, step: int) -> None:
        """Read the sizes at the end of `step`."""
        at_s = monotonic()
        for place, size in self._sizes(self._followed).items():
            readings = self._readings[place]
            readings.append((step, at_s, size))
            if len(readings) > _MOST_READINGS:
                del readings[1:-1:2]

    def of(self, place: Place) -> list[tuple[int, float, float]]:
        """The readings of a place: (step, time on the monotonic clock, size)."""
        return self._readings.get(place, [])

    def _sizes(self, wanted: list[Place]) -> dict[Place, float]:
        walk: Any = KnownPlacesWalk(self._places, Arrays(), self._unnamed, wanted)
        walk.run()
        sizes = {}
        for place in wanted:
            found = walk.found.get(place)
            if found is not None and not (found.is_partial or walk.is_cut):
                unit, size = found.size()
                if unit == place.unit:
                    sizes[place] = size
        return sizes
