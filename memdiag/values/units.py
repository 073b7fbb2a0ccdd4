"""Units of memory and time: the only place that converts between them.

`KB`, `MB`, `GB` are decimal and `KiB`, `MiB`, `GiB` binary when a *person* writes them on the
command line. Logs use `MB` for both. A constant factor cannot change a verdict, so `mb` in a log is
always read as 10**6 bytes.
"""

from __future__ import annotations

import re

from memdiag.errors import UsageError
from memdiag.values.sanitize import printable

# `1h30m`, `1 h 5 min`: several units, each smaller than the one before.
_PARTS = re.compile(r"(?:[0-9.]+\s*[a-z]+\s*)+", re.I)
_PART = re.compile(r"([0-9.]+\s*[a-z]+)\s*", re.I)
_QUANTITY = re.compile(r"\s*([0-9][0-9_,]*(?:\.[0-9]+)?|\.[0-9]+)\s*([a-z]*)\s*", re.I)
_THOUSANDS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SPELT = {"kilo": "k", "mega": "m", "giga": "g", "tera": "t"}
_SPELT |= {"meg": "m", "gig": "g"}
_SPELT |= {"kibi": "ki", "mebi": "mi", "gibi": "gi", "tebi": "ti"}
_LETTERS = str.maketrans("кмгтб", "kmgtb")  # of Cyrillic
_SECONDS = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0}
_SECONDS |= {"m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hour": 3600.0}
_SECONDS |= {"hours": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0}


def bytes_per_unit(unit: str) -> int | None:
    """Bytes in one `kb`, `MiB`, `g`, `bytes`...; None if `unit` is not a unit of memory.

    French `Mo` (mégaoctet) and Russian `МБ` are the same as `MB`.
    """
    unit = unit.strip().lower().translate(_LETTERS)
    if unit in {"b", "by", "byte", "bytes"}:  # ("By" in OpenTelemetry)
        return 1
    unit = _SPELT.get(unit.removesuffix("s").removesuffix("byte"), unit)
    match = re.fullmatch(r"([kmgtp])(i?)(b|o|bytes?)?", unit)
    if match is None:
        return None
    base = 1024 if match.group(2) else 1000
    return int(base ** _POWERS[match.group(1)])


def seconds_per_unit(unit: str) -> float | None:
    """Seconds in one `ms`, `s`, `min`, `h`...; None if `unit` is not a unit of time."""
    return _SECONDS.get(unit.strip().lower())


def parse_bytes(text: str, option: str = "") -> int:
    """Bytes in `16GB`, `1.5 GiB`, `500M`, `0`. Raises UsageError on anything else: a number without
    a unit is more often meant as gigabytes than as bytes.

    option: where the text was given, for the message.
    """
    number, unit = split_quantity(text)
    if number and not unit:
        raise no_unit(text, option)
    factor = 1 if not unit else bytes_per_unit(unit)
    if number is None or factor is None:
        raise invalid(text, option, "not a size", "use 16GB, 1.5GiB or 500MB")
    return round(number * factor)


def parse_seconds(text: str, option: str = "") -> float:
    """Seconds in `90`, `1.5h`, `10min`, `200ms`, `1h30m`. Raises UsageError on anything else."""
    whole = _PARTS.fullmatch(text.strip())
    parts = [split_quantity(part) for part in (_PART.findall(text) if whole else [text])]
    factors = [None if number is None else seconds_per_unit(unit) for number, unit in parts]
    known = [factor for factor in factors if factor is not None]
    falls = all(known[at] > known[at + 1] for at in range(len(known) - 1))
    if len(known) < len(parts) or not falls:
        raise invalid(text, option, "not a time", "use 90, 90s, 10min or 1h30m")
    return sum((number or 0.0) * factor for (number, _), factor in zip(parts, known, strict=True))


def parse_count(text: str, option: str) -> int:
    """A count as people write it: 124M, 7b, 1.3B, 124_000_000. Raises UsageError."""
    number, unit = split_quantity(text)
    count = round((number or 0.0) * _THOUSANDS.get(unit, 0))
    if count <= 0:
        raise invalid(text, option, "not a count", "write 124M or 7B")
    return count


def split_quantity(text: str) -> tuple[float | None, str]:
    """The number and the unit (lowercase, "" without one) in `1,000 MB`; None if not a number."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None, ""
    return float(match[1].replace(",", "").replace("_", "")), match[2].lower()


def no_unit(text: str, option: str, number: str = "") -> UsageError:
    """The error for memory without a unit. number: what needs one, `text` by default."""
    number = printable(number or text).strip()
    remedy = f"use {number}GB or {number}GiB (bytes: {number}B)"
    return invalid(text, option, "no unit", remedy)


def invalid(text: str, option: str, problem: str, remedy: str) -> UsageError:
    """The error for an option's value that cannot be used."""
    where = f" for {option}" if option else ""
    return UsageError(f"invalid value {printable(text)!r}{where}: {problem}", remedy=remedy)
