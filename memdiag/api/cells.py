"""Names lines of a notebook by their cells: `In[5]:9` instead of `3067906512.py:9`."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from memdiag.values.findings import Culprit, GrownPlace, RecordingFinding

_Line = TypeVar("_Line", Culprit, GrownPlace)


def with_cells(found: RecordingFinding) -> RecordingFinding:
    """The finding with the names and the text of this notebook's cells; as it is elsewhere."""
    cells = _cells()
    if not cells:
        return found
    if found.cause is not None:
        culprits = tuple(_named(one, cells) for one in found.cause.culprits)
        found = replace(found, cause=replace(found.cause, culprits=culprits))
    return replace(found, grown=tuple(_named(one, cells) for one in found.grown))


def _cells() -> Mapping[str, int]:
    """The number of each cell by the file name of its code. IPython has no interface for this."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    known = getattr(getattr(shell, "compile", None), "_filename_map", None)
    return known if isinstance(known, dict) else {}


def _named(place: _Line, cells: Mapping[str, int]) -> _Line:
    if place.file is None or place.file not in cells or place.line is None:
        return place
    code = linecache.getline(place.file, place.line).strip()
    return replace(place, file=f"In[{cells[place.file]}]", code=place.code or code or None)
