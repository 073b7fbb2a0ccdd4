"""Names the numbers that PHP's `var_dump` prints, one a line: of `var_dump($i, memory_get_usage())`
`int(3)` and `int(23029608)` become `i: 3, memory_get_usage: 23029608`.
"""

from __future__ import annotations

import re

from memdiag.recording.parsing.column_meaning import Part, recognise

_CALL = re.compile(rb"\bvar_dump\(((?:[^()\n]|\([^()\n]{0,80}\)){1,200})\)\s{0,4};")
_DUMPED = re.compile(rb"\s{0,16}(?:int|float)\((-?[0-9]{1,19}(?:\.[0-9]{1,19})?)\)\s{0,4}")
_WORD = re.compile(rb"[A-Za-z_]\w*")
_COMMA = re.compile(rb",(?![^()]*\))")
_DUMPS_AT_LEAST = 4


def with_dumped_names(lines: list[bytes]) -> list[bytes]:
    """The lines, with the names of the arguments before the numbers of each call, in one line; as
    they are unless one call printed all of them, and an argument is memory.
    """
    dumped = [at for at, line in enumerate(lines) if _DUMPED.fullmatch(line)]
    if len(dumped) < _DUMPS_AT_LEAST:
        return lines
    calls = {one[1] for line in lines for one in _CALL.finditer(line)}
    names = [_name(part) for part in _COMMA.split(calls.pop())] if len(calls) == 1 else []
    is_of_memory = any(recognise(name.decode()).part is Part.METRIC for name in names)
    if not is_of_memory or len(dumped) % len(names):
        return lines
    named = list(lines)
    for first in range(0, len(dumped), len(names)):
        places = dumped[first : first + len(names)]
        values = [found[1] for at in places if (found := _DUMPED.fullmatch(lines[at]))]
        for at in places:
            named[at] = b""
        pairs = zip(names, values, strict=True)
        named[places[-1]] = b", ".join(name + b": " + value for name, value in pairs)
    return named


def _name(argument: bytes) -> bytes:
    """The first name in it, of a variable or a function."""
    words = _WORD.findall(argument)
    return words[0] if words else b"value"
