"""Names the numbers that a shell or R prints below a command: `ps -o rss= -p 4711`, and `1070888`
below it becomes `rss (KiB): 1070888`. A vector of MATLAB becomes a list.
"""

from __future__ import annotations

import re
from itertools import pairwise

from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.values.measurements import Unit

_ENVIRONMENT = rb"(?:\([\w.-]+\) ?)*"
_PROMPT = re.compile(
    rb"\s{0,3}" + _ENVIRONMENT + rb"(?:\$ "
    rb"|\[?[\w.-]+@[\w.-]+[: ][^$#%>]{0,80}[$#%] "  # me@host:~/job$, [me@host job]$
    rb"|PS [A-Z]:\\[^>]*> ?|[A-Z]:\\[^>]*> ?"  # PowerShell, cmd
    rb"|> (?=[^\n]*\w\()"  # R
    rb"|\(gdb\) (?=p)|\(lldb\) (?=[pev])|In\[[0-9]+\]:= "  # gdb, Mathematica
    rb"|(?:irb|iex|\[[0-9]+\] pry)\([^)\n]{0,40}\)[:0-9]*[>*] "  # Ruby, Elixir
    rb"|(?:scala|jshell|julia|node|sbcl)> "
    rb"|(?:[A-Za-z][\w.()@-]{0,32}[=:0-9]{0,4})?> (?=\())"  # Lisp, Scheme, Racket, Clojure
    rb"(.*)"
)
_VALUE = re.compile(
    rb"\s*(?:\[1\] +|\$[0-9]+ = |Out\[[0-9]+\]= |=> )?"
    rb"([0-9][0-9.,_']*(?: ?(?:[KMGT](?:i?B)?|bytes|%))?)"
    rb"(?: ?/ ?[0-9][0-9.]*[KMGT]?i?B)?\s*"  # of a total
)
# A time of day, perhaps with its date, or seconds since 1970.
_WHEN = re.compile(
    rb"\s*(?:\[?(?:[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T_ ])?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?\]?"
    rb"|1[0-9]{9})[,;]?\s+"
)
# `echo "$(date +%T) $(ps -o rss= -p 7)"`: a time, and the value of what stands behind the date.
_DATED = re.compile(rb"(?:\$\(|`)date\b[^()`]*[)`][^;|&$`]{0,16}(?:\$\(|`)([^`;&]*)")
# `250 fits: 69.24 MB`, where the command has `"fits:"` before what it prints.
_COUNTED = re.compile(rb"\s*[0-9]+ ([A-Za-z]{2,24}(?: [A-Za-z]{2,24}){0,2})(?=:)")
_RESULT = re.compile(rb"\s*=> ")
_WORD = re.compile(rb"(?<!\w)[A-Za-z_][\w.:]*")
_LOOP = re.compile(rb"\b(?:for|while|until|repeat|watch|sapply|lapply)\b")
_PAUSE = re.compile(
    rb"\b(?:sleep|Start-Sleep(?: -s\w*)?|watch -n) ?([0-9]{1,6}(?:\.[0-9]{1,3})?)([mh]?)\b"
)
_SECONDS = {b"": 1.0, b"m": 60.0, b"h": 3600.0}
# What the number is divided by, or the tool's own unit: `WorkingSet64 / 1MB`, of ps, of /proc.
_DIVISOR = re.compile(rb"/ ?\(?1([KMG])B\b")
_BY_1024 = re.compile(rb"/ ?1024(?![0-9.])")
_KIB_TO_GIB = ("KiB", "MiB", "GiB")
_IN_KIB = re.compile(rb"\bps (?:-|[aux]{2,}\b)|/proc/")
_IN_BYTES = re.compile(rb"\bMemoryInUse\b")  # of Mathematica
_COMMANDS = frozenset((b"free",))  # of these names, the command prints several amounts
_DECIMAL_COMMA = re.compile(rb"^([0-9]+),([0-9]{1,2}|[0-9]{4,})(?![0-9,.])")
_LONGEST = 400
# Of several columns without a header, which the command names: `ps --no-headers -o etimes,rss`.
_OF_COLUMNS = re.compile(rb"\bps\b[^|;]*\s-?o ?[a-z%]+(?:=,|,[^|;]*\s--no-headers?\b)")
_NO_HEADERS = re.compile(rb"\bps\b[^|;]*\s(?:--no-headers?|h)\s[^|;]*?-?o ?[a-z%]+,")
_ROWS_ALONE = re.compile(
    rb"\bps\b[^|;]*\s-?o ?[a-z%]+,[^|;]*\| ?(?:tail -(?:n ?)?(?:\+2|1)\b|sed 1d\b|grep -v\b)"
)
_OF_PODS = re.compile(rb"\bkubectl\s+top\s+pods?\b[^|;]*(?:\s--no-headers\b|\|\s*grep\b)")
# `mem_mb =`, and its numbers below `Columns 1 through 8`.
_VECTOR = re.compile(
    rb"(?m)^(?:>> )?([A-Za-z]\w*) =[ \t\r]*\n\s*\n"
    rb"((?:[ ]{2,}Columns [0-9]+ (?:through|and) [0-9]+[ \t\r]*\n\s*\n"
    rb"[ ]*(?:[-+0-9.e]+[ \t\r]*)+(?:\n\s*(?=\n|\Z)|\Z)\n*){2,})"
)
# Of redis-cli: `3) "total.allocated"`, and `4) (integer) 99115008` below it.
_REPLIES = re.compile(
    rb'(?m)^ {0,4}[0-9]+\) "([a-z._-]+)"[ \t\r]*\n'
    rb' {0,4}[0-9]+\) (?:\(integer\) )?"?([0-9.]+)"?[ \t\r]*$'
)
_COLUMNS = re.compile(rb"Columns [0-9]+ (?:through|and) [0-9]+")


def with_commands_names(lines: list[bytes]) -> list[bytes]:
    """The lines, with the name of memory in a command before the number below it, and before each
    of them if the command is a loop, with the seconds since the first if that waits in each turn. A
    command that names several columns stays, without a prompt.
    """
    prompts = {at: found[1] for at, line in enumerate(lines) if (found := _PROMPT.match(line))}
    named = list(lines)
    others: list[int] = []
    for at, end in pairwise([*prompts, len(lines)]):
        command = prompts[at][:_LONGEST]
        if any(one.search(command) for one in (_OF_COLUMNS, _NO_HEADERS, _ROWS_ALONE, _OF_PODS)):
            named[at] = command
        numbers = {n: x[1] for n in range(at + 1, end) if (x := _VALUE.fullmatch(lines[n]))}
        if numbers and (len(numbers) == 1 or _LOOP.search(command)) and (name := _name(command)):
            named[at] = b""  # the numbers in it are not readings
            pause_s = _pause_s(command)
            for turn, (n, number) in enumerate(numbers.items()):
                when = f"elapsed (s): {turn * pause_s:g}, " if pause_s else ""
                value = _DECIMAL_COMMA.sub(rb"\1.\2", number)
                named[n] = f"{when}{name}: ".encode() + value
        elif placed := _behind_positions(command, {n: lines[n] for n in range(at + 1, end)}):
            named[at] = b""
            for n, line in placed.items():
                named[n] = line
        else:
            others += (n for n in numbers if _RESULT.match(lines[n]))
    for n in others if named != lines else ():  # of Ruby, where each command has a result
        named[n] = b""
    return named


def _pause_s(command: bytes) -> float:
    """Seconds that a loop waits in each turn, 0 if it does not."""
    found = _PAUSE.search(command) if _LOOP.search(command) else None
    return 0.0 if found is None else float(found[1]) * _SECONDS[found[2]]


def _behind_positions(command: bytes, lines: dict[int, bytes]) -> dict[int, bytes]:
    """The lines of a time or a count and a number that a loop prints, with the name of the number
    before it; none if what stands behind the date or the count in the command does not name memory.
    """
    if not _LOOP.search(command):
        return {}
    dated = _DATED.search(command)
    by_time = "" if dated is None else _name(dated[1])
    named = {}
    for n, line in lines.items():
        if by_time and (when := _WHEN.match(line)) is not None:
            name, before, end = by_time, when[0], when.end()
        elif (count := _COUNTED.match(line)) is not None:
            printed = re.search(rb"[\"' ]" + count[1] + rb":[^\"']{0,8}[\"'](.*)", command)
            name, before, end = (
                _name(printed[1]) if printed else "",
                count[0] + b", ",
                count.end() + 1,
            )
        else:
            continue
        if name and (value := _VALUE.fullmatch(line, end)) is not None:
            number = _DECIMAL_COMMA.sub(rb"\1.\2", value[1])
            named[n] = before + f"{name}: ".encode() + number
    return named


def with_lists(text: bytes) -> bytes:
    """The text with vectors that MATLAB prints in several parts as lists, and names and values that
    redis-cli prints below each other in one line.
    """
    text = _REPLIES.sub(rb"\1: \2\n", text) if b"(integer) " in text else text
    return _VECTOR.sub(_as_list, text) if b" Columns " in text else text


def _as_list(found: re.Match[bytes]) -> bytes:
    numbers = _COLUMNS.sub(b"", found[2]).split()
    return found[1] + b" = [" + b", ".join(numbers) + b"]\n"


def _name(command: bytes) -> str:
    """The name and unit of what a command prints, "" unless that is memory."""
    words = (word for word in _WORD.findall(command) if word not in _COMMANDS)
    names = [word.rstrip(b":").rpartition(b":")[2].decode() for word in words]
    known = {one: recognise(one) for one in names}
    metrics = [one for one in names if known[one].part is Part.METRIC and not known[one].by_unit]
    sizes = (one for one in metrics if known[one].unit is not Unit.COUNT)  # no `garbage`
    name = next(sizes, next(iter(metrics), ""))
    divisor = _DIVISOR.search(command)
    unit = f"{divisor[1].decode()}iB" if divisor else ""
    if not unit and _IN_KIB.search(command):
        divided = len(_BY_1024.findall(command))  # `awk '{print $1/1024}'`
        unit = _KIB_TO_GIB[min(divided, len(_KIB_TO_GIB) - 1)]
    unit = "bytes" if not unit and _IN_BYTES.search(command) else unit
    return f"{name} ({unit})" if name and unit else name
