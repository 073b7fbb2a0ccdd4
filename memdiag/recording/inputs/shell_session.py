"""Names the numbers that a shell or R prints below a command: `ps -o rss= -p 4711`, and `1070888`
below it becomes `rss (KiB): 1070888`. A vector of MATLAB becomes a list.
"""

from __future__ import annotations

import math
import re
from itertools import pairwise

from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.intervals import pause_s
from memdiag.recording.parsing.printed_columns import columns_of_ps, fields_of_nvidia_smi
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
_LOOP = re.compile(
    rb"\b(?:for|while|until|repeat|watch|sapply|lapply|loop do)\b"
    rb"|\.(?:times|upto|step|each\w*)\b(?= *(?:\{|do\b|\())"  # Ruby
)
# What a loop prints in turn: `print(i*1000, collectgarbage("count"))`.
_PRINT = re.compile(rb"(?<![\w.])(?:print|println|cat|console\.log)\(")
_TEXT = re.compile(rb"[\"'][^\"'\w]*(?:\\[nt])?[^\"'\w]*[\"']")
_TOKEN = re.compile(rb"\"[^\"]*\"|'[^']*'|.")
_COUNTER = re.compile(rb"\bfor ?\(? ?(?:let |var |local )?([A-Za-z_]\w*)\b")
_NUMBERS = re.compile(rb"\s*[0-9.]+(?:e[-+]?[0-9]+)?(?:(?:, ?|\s+)[0-9.]+(?:e[-+]?[0-9]+)?)+\s*")
# Of Lua, in KiB, unless it is a part of a difference.
_OF_LUA = re.compile(
    rb"(?<![-+] )(?<![-+])\bcollectgarbage ?\(? ?[\"']count[\"'] ?(?:\)|(?!\)))(?! ?[-+])"
    rb"(?: ?\* ?(1024)\b)?"
)
# What the number is divided by, or the tool's own unit: `WorkingSet64 / 1MB`, of ps, of /proc.
_DIVISOR = re.compile(rb"/ ?\(?1([KMG])B\b")
_BY_1024 = re.compile(rb"/ ?1024(?![0-9.])")
_KIB_TO_GIB = ("KiB", "MiB", "GiB")
_IN_KIB = re.compile(rb"\bps (?:-|[aux]{2,}\b)|/proc/")
_IN_BYTES = re.compile(rb"\bMemoryInUse\b")  # of Mathematica
_COMMANDS = frozenset((b"free",))  # of these names, the command prints several amounts
_DECIMAL_COMMA = re.compile(rb"^([0-9]+),([0-9]{1,2}|[0-9]{4,})(?![0-9,.])")
_LONGEST = 400
# What names the columns below it, besides ps and nvidia-smi.
_NAMES_COLUMNS = re.compile(
    rb"\bkubectl\s+top\s+pods?\b[^|;]*(?:\s--no-headers\b|\|\s*grep\b)"
    rb"|\bdocker\s+stats\b.*\.MemUsage\b|\bGC\.class_histogram\b|\bjmap\s+-histo\b"
)
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
        text = command.decode("utf-8", "replace")
        if _NAMES_COLUMNS.search(command) or columns_of_ps(text) or fields_of_nvidia_smi(text):
            named[at] = command
        is_loop = _LOOP.search(command) is not None
        below = {n: lines[n] for n in range(at + 1, end)}
        numbers = {n: x[1] for n, line in below.items() if (x := _VALUE.fullmatch(line))}
        if is_loop:  # in Ruby its result is the number of rounds
            results = [n for n in numbers if _RESULT.match(lines[n])]
            numbers = {n: numbers[n] for n in numbers if n not in results}
            others += results
        if numbers and (len(numbers) == 1 or is_loop) and (name := _name(command)):
            named[at] = b""  # the numbers in it are not readings
            wait_s = pause_s(text) if is_loop else None
            for turn, (n, number) in enumerate(numbers.items()):
                value = _DECIMAL_COMMA.sub(rb"\1.\2", number)
                named[n] = f"{_moment(turn, wait_s)}{name}: ".encode() + value
        elif is_loop and (placed := _in_turn(command, below) or _behind_positions(command, below)):
            named[at] = b""
            for n, line in placed.items():
                named[n] = line
        else:
            others += (n for n in numbers if _RESULT.match(lines[n]))
    for n in others if named != lines else ():  # of Ruby, where each command has a result
        named[n] = b""
    return named


def _moment(turn: int, wait_s: float | None) -> str:
    """What dates a reading of a loop that waits, where readings are not operations: its seconds, or
    its number where these are not known.
    """
    if wait_s is None:
        return ""
    return f"tick: {turn}, " if math.isnan(wait_s) else f"elapsed time (s): {turn * wait_s:g}, "


def _in_turn(command: bytes, lines: dict[int, bytes]) -> dict[int, bytes]:
    """The lines of several numbers that the only `print` of a loop shows, each with its name; none
    if none of them is memory.
    """
    parts = _arguments(command)
    counter = _COUNTER.search(command)
    is_counted = re.compile(rb"\b" + counter[1] + rb"\b" if counter is not None else rb"(?!)")
    names = [_name(part) or ("index" if is_counted.search(part) else "value") for part in parts]
    if not any(recognise(name).part is Part.METRIC for name in names):
        return {}
    named = {}
    for n, line in lines.items():
        numbers = line.replace(b",", b" ").split() if _NUMBERS.fullmatch(line) else []
        if len(numbers) == len(names) > 1:
            pairs = zip(names, numbers, strict=True)
            named[n] = b", ".join(name.encode() + b": " + one for name, one in pairs)
    return named


def _arguments(command: bytes) -> list[bytes]:
    """What the only `print` of a command is called with, without blanks and ends of lines; [] if
    there are several.
    """
    calls = list(_PRINT.finditer(command))
    if len(calls) != 1:
        return []
    parts, depth = [b""], 1
    for token in _TOKEN.findall(command, calls[0].end()):
        depth += (token in b"([{") - (token in b")]}")
        if not depth:
            break
        if token == b"," and depth == 1:
            parts.append(b"")
        else:
            parts[-1] += token
    return [part for part in map(bytes.strip, parts) if part and not _TEXT.fullmatch(part)]


def _behind_positions(command: bytes, lines: dict[int, bytes]) -> dict[int, bytes]:
    """The lines of a time or a count and a number that a loop prints, with the name of the number
    before it; none if what stands behind the date or the count in the command does not name memory.
    """
    dated = _DATED.search(command)
    by_time = "" if dated is None else _name(dated[1])
    named = {}
    for n, line in lines.items():
        if by_time and (when := _WHEN.match(line)) is not None:
            name, before, end = by_time, when[0], when.end()
        elif (count := _COUNTED.match(line)) is not None:
            behind = rb":(?:[^\"']{0,8}[\"'](.*)|[^\"']{0,8}[#$]\{([^}]*)\})"
            printed = re.search(rb"[\"' }]" + count[1] + behind, command)
            name, before, end = (
                _name(printed[1] or printed[2]) if printed else "",
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
    if (of_lua := _OF_LUA.search(command)) is not None:
        unit = "bytes" if of_lua[1] else _KIB_TO_GIB[min(len(_BY_1024.findall(command)), 2)]
        return f"lua_memory ({unit})"
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
    is_count = not name or recognise(name).unit is Unit.COUNT  # `Threads:` of /proc
    return f"{name} ({unit})" if unit and not is_count else name
