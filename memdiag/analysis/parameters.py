"""A number of the decision with its unit, meaning and source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, field, fields, is_dataclass
from typing import Any

HEURISTIC = "heuristic"


def number(default: Any, unit: str, says: str, source: str = HEURISTIC) -> Any:
    """A field of a frozen dataclass of parameters.

    default: the value, or a mapping of values. unit: "1" for a ratio. says: what it means. source:
    a paper, the command that measured it, or "heuristic".
    """
    metadata = {"unit": unit, "says": says, "source": source}
    if isinstance(default, (int, float)):
        return field(default=default, metadata=metadata)
    return field(default_factory=lambda: default, metadata=metadata)


def numbers_of(parameters: object) -> Iterator[Field[Any]]:
    """The fields of a dataclass of parameters that are numbers."""
    if is_dataclass(parameters):
        yield from (one for one in fields(parameters) if "unit" in one.metadata)
