"""Values as JSON: the one encoding of reports, comparisons and sidecars."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

# Metadata of a field that JSON leaves out.
NOT_IN_JSON = {"json": False}


def in_json(kind: Any) -> tuple[str, ...]:
    """Names of the fields of a dataclass, or of a value of it, that are its keys in JSON."""
    return tuple(f.name for f in fields(kind) if f.metadata.get("json", True))


def plain(value: Any) -> Any:
    """JSON values of `value`: dataclasses by field, enums by value, sets sorted.

    A number that is not finite is None: JSON has no NaN and no infinity.
    """
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if is_dataclass(value):
        return {name: plain(getattr(value, name)) for name in in_json(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (frozenset, set)):
        return sorted(map(plain, value))
    if isinstance(value, (tuple, list)):
        return [plain(entry) for entry in value]
    return str(value)
