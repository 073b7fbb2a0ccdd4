"""The columns that a command prints without their header: `ps -o pid,rss,cmd -p 7 | tail -1`,
`ps -o rss=,etime= -p 7`, `nvidia-smi --query-gpu=index,memory.used --format=csv,noheader`.
"""

from __future__ import annotations

import re

# A part of a pipe, in which quotes may hold what ends one elsewhere.
_PART = r"(?:'[^']*'|\"[^\"|]*\"|\$\([^()|]*\)|[^'\"|;&()<>`])*"
_PS = re.compile(rf"\bps\s({_PART})((?:\|{_PART})*)")
_FORMAT = re.compile(
    r"(?<!\S)(?:-?[aAdeflLTwx]*o|--format[ =]) *[\"']?"
    r"([a-z_%]+(?::[0-9]+)?=?(?:,[a-z_%]+(?::[0-9]+)?=?)*)[\"']?(?!\S)"
)
_NO_HEADERS = re.compile(r"(?<!\S)(?:--no-headers?|h)(?!\S)")
_NVIDIA_SMI = re.compile(rf"\bnvidia-smi\s({_PART})((?:\|{_PART})*)")
_QUERY = re.compile(
    r"--query-(?:gpu|compute-apps|accounted-apps)[= ][\"']?([a-z_.]+(?:,[a-z_.]+)*)"
)
_NO_HEADER = re.compile(r"--format[= ][\"']?csv,(?:nounits,)?noheader\b")
# What leaves out lines of its input, and what changes none of its columns.
_SELECTS = re.compile(
    r"\s*(?:tail|[ef]?grep(?!.*\s-\w*o)"
    r"|sed(?=(?: -n)? *['\"]?(?:[0-9]+|\$!?)(?:,(?:[0-9]+|\$))?[dp]['\"]? *$)"
    r"|g?awk(?= *['\"]?(?:NR *[=!<>]=? *[0-9]+|/[^/]*/)['\"]? *$))(?!\S)"
)
_KEEPS = re.compile(
    r"\s*(?:(?:head|sort|cat|tee|ts|xargs)(?!\S)|tr -s|column -t"
    r"|sed ['\"]?s/\^(?: |\\s|\[ \])[*+]//['\"]? *$)"
)
_SEVERAL = 2


def columns_of_ps(command: str) -> list[str]:
    """The names of several columns that a command with ps prints, [] if it prints their header, or
    if something behind ps may change them.
    """
    if (found := _PS.search(command)) is None or not _keeps_columns(found[2]):
        return []
    columns = [column for one in _FORMAT.findall(found[1]) for column in one.split(",")]
    is_bare = all(column.endswith("=") for column in columns)
    leaves_out = any(map(_SELECTS.match, found[2].split("|")[1:]))
    if len(columns) < _SEVERAL or not (is_bare or leaves_out or _NO_HEADERS.search(found[1])):
        return []
    return [column.rstrip("=").partition(":")[0] for column in columns]


def fields_of_nvidia_smi(command: str) -> list[str]:
    """The same of a query of nvidia-smi, whose columns have commas between them."""
    if (found := _NVIDIA_SMI.search(command)) is None or not _keeps_columns(found[2]):
        return []
    query = _QUERY.search(found[1]) if _NO_HEADER.search(found[1]) else None
    fields = query[1].split(",") if query is not None else []
    return fields if len(fields) >= _SEVERAL else []


def _keeps_columns(pipe: str) -> bool:
    parts = [part.rstrip() for part in re.findall(rf"\|({_PART})", pipe)]
    return all(_SELECTS.match(part) or _KEEPS.match(part) for part in parts)
