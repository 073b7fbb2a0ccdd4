"""Units of memory and time: the only place that converts between them.

`KB`, `MB`, `GB` are decimal and `KiB`, `MiB`, `GiB` binary when a *person* writes them to us on
the command line. In logs people write `MB` for both; a constant factor cannot change a verdict,
so a log's `mb` is read as 10**6 bytes throughout and nothing pretends to know better.
"""

from __future__ import annotations

import re

from memdiag.errors import UsageError

_COUNT = re.compile(r"([0-9][0-9_,]*(?:\.[0-9]+)?)\s*([kmbgt]?)", re.IGNORECASE)
_THOUSANDS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SPELT = {"kilo": "k", "mega": "m", "giga": "g", "tera": "t"}
_SPELT |= {"kibi": "ki", "mebi": "mi", "gibi": "gi", "tebi": "ti"}
_SIZE = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?|\.[0-9]+)\s*([kmgtp]?)(i?)(b|bytes?)?\s*", re.I)
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([a-z]*)\s*", re.I)
_SECONDS = {"": 1.0, "ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SECONDS |= {"d": 86400.0, "day": 86400.0, "days": 86400.0, "hours": 3600.0, "hour": 3600.0}
_SECONDS |= {"minutes": 60.0, "minute": 60.0, "seconds": 1.0, "second": 1.0, "us": 1e-6}


def bytes_per_unit(unit: str) -> int | None:
    """Bytes in one `kb`, `MiB`, `g`, `bytes`...; None where `unit` is no unit of memory."""
    unit = unit.strip().lower()
    if unit in {"b", "byte", "bytes"}:
        return 1
    unit = _SPELT.get(unit.removesuffix("s").removesuffix("byte"), unit)
    match = re.fullmatch(r"([kmgtp])(i?)(b|bytes?)?", unit)
    if match is None:
        return None
    base = 1024 if match.group(2) else 1000
    return int(base ** _POWERS[match.group(1)])


def parse_bytes(text: str) -> int:
    """Bytes in `16GB`, `1.5 GiB`, `500M`, `4096`. Raises UsageError on anything else."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no amount of memory", remedy="write 16GB, 1.5GiB or 500MB")
    number, prefix, binary, _ = match.groups()
    per_unit = (1024 if binary else 1000) ** _POWERS[prefix.lower()]
    return round(float(number.replace(",", "").replace("_", "")) * int(per_unit))


def seconds_per_unit(unit: str) -> float | None:
    """Seconds in one `ms`, `s`, `min`, `h`...; None where `unit` is no unit of time."""
    return _SECONDS.get(unit.strip().lower())


def parse_seconds(text: str) -> float:
    """Seconds in `90`, `1.5h`, `10min`, `200ms`. Raises UsageError on anything else."""
    match = _DURATION.fullmatch(text)
    per_unit = None if match is None else _SECONDS.get(match.group(2).lower())
    if match is None or per_unit is None:
        raise UsageError(f"{text!r} is no duration", remedy="write 90, 10min or 1.5h")
    return float(match.group(1)) * per_unit


def parse_count(option: str, text: str) -> int:
    """A number of things as people write it: 124M, 7b, 1.3B, 124_000_000. Raises UsageError."""
    found = _COUNT.fullmatch(text.strip())
    number = float(found[1].replace(",", "").replace("_", "")) if found else 0.0
    count = round(number * _THOUSANDS[found[2].lower()]) if found else 0
    if count <= 0:
        raise UsageError(f"{option} {text!r} is no number", remedy="write 124M or 7B")
    return count
