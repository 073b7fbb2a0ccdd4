"""How a log writes its numbers: groups of three digits, decimals, and several values at once.

`3 996 854 kB`, `4_000_123`, `1.204,5 MB` are written as `3996854 kB`, `4000123`, `1204.5 MB` before
the lines are searched, `mem min/max = 3/5 MB` as `mem min = 3 MB, mem max = 5 MB`, `Mem: 9 total, 4
used` as `Mem total: 9, Mem used: 4`, the used and committed memory of `36.8 (60.0) MB` as
`36.8 MB (60.0 MB)`, `41k steps` as `41000 steps`, `05:41:02 PM` as `17:41:02`, `kl. 08.30` as
`08:30`, and `3 mins 14.9 secs` as `194.9 s`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.number_marks import decimal_marks, may_be_address
from memdiag.values.measurements import AxisKind

# (The latter: KB to TB in Cyrillic letters, in UTF-8.)
_SIZE_ENDS = rb"(?=[ ]?(?:[KMGTkmgt]i?[Bbo]\b|\xd0[\x9a\x9c\x93\xa2]\xd0\x91))"
# Spaces that do not break a line, thin and narrow ones, in UTF-8.
_SPACES = rb"(?:\xc2\xa0|\xe2\x80\x89|\xe2\x80\xaf)"
_ALONE = rb"(?<![\w.])()"
# What separates groups of three digits. Blanks do only between a label and a unit of memory:
# `GPU 0 512 MB` has two numbers, `RSS: 3 996 854 kB` has one.
_GROUPED = (
    re.compile(_ALONE + rb"([1-9][0-9]{0,2}(?:_[0-9]{3})+)(?!\w)"),
    re.compile(_ALONE + rb"([1-9][0-9]{0,2}(?:(?:'|\xe2\x80\x99)[0-9]{3})+)(?!\w)"),
    re.compile(_ALONE + rb"([1-9][0-9]{0,2}(?:" + _SPACES + rb"[0-9]{3})+)(?![0-9])"),
    re.compile(rb"([:=][ ]{0,8})([1-9][0-9]{0,2}(?: [0-9]{3})+(?:[.,][0-9]+)?)" + _SIZE_ENDS),
    re.compile(rb"(?<![\w.,])()([1-9][0-9]?(?:,[0-9]{2}){1,6},[0-9]{3})" + _SIZE_ENDS),  # lakhs
)
# Points between thousands, where commas are decimal.
_POINTED = re.compile(rb"(?<![\w.])(?<![0-9]:)[1-9][0-9]{0,2}(?:\.[0-9]{3})+(?![0-9]|\.[0-9])")
# Numbers with marks, no times and no pairs such as `0,1`.
_MARKED = re.compile(
    rb"(?<![\w.,/-])(?<![0-9]:)(?![0-9],[0-9]\b)[0-9]+(?:[.,][0-9]+)+(?![0-9:/-]|[.,][0-9])"
)
_FEW_OTHERS = 0.1
_COMMA = re.compile(rb"(?<=[0-9]),(?=[0-9])")
_COMMA_SIZE = re.compile(rb"[0-9],[0-9]{1,2}" + _SIZE_ENDS)
# Where blanks stand between thousands, or units are Cyrillic, a comma is decimal: `памет 1,180 ГБ`.
_BLANK_GROUPS = re.compile(rb"(?<![0-9.,])[1-9][0-9]{0,2} [0-9]{3} [0-9]{3}(?![0-9.,])")
_COMMA_THOUSANDTHS = re.compile(rb"(?<![0-9.,])[0-9]{1,3},[0-9]{3}" + _SIZE_ENDS)
_CYRILLIC_SIZE = re.compile(rb"[0-9] ?\xd0[\x9a\x9c\x93\xa2]\xd0\x91")
# Not `2.048 MB`, which may be of thousands.
_POINT_SIZE = re.compile(
    rb"(?:[0-9]{4}\.[0-9]+|(?<![0-9.,])[0-9]{1,3}\.(?:[0-9]{1,2}|[0-9]{4,}))" + _SIZE_ENDS
)
_USED_AND_HELD = re.compile(
    rb"(?<![\w.])([0-9]+(?:\.[0-9]+)?)[ ]?(\([0-9]+(?:\.[0-9]+)?)\)([ ]?[KMG]i?B\b)"
)
# Names between slashes, and as many values: `mem min/avg/max = 3900.0/4012.5/4880.0 MB`.
_NAME = rb"(?:min|max|avg|mean|std|peak|current|cur|used|free|total|allocated|reserved|cached)"
_VALUE = rb"[0-9]+(?:\.[0-9]+)?"
_LIST = (
    rb"(?<![A-Za-z/])(?P<names>" + _NAME + rb"(?:/" + _NAME + rb")+)"
    rb"(?P<is>[ ]?[:=][ ]?)(?P<values>" + _VALUE + rb"(?:/" + _VALUE + rb")+)(?![0-9/])"
    rb"(?P<unit>[ ]?[KMGTkmgt]i?[Bb]\b)?"
)
_HAS_LIST = re.compile(_LIST, re.I)
_LISTED = re.compile(rb"(?P<about>[A-Za-z_()\[\]]{0,24}[ ]?)" + _LIST, re.I)
_HALF_DAY = re.compile(
    rb"(?<![0-9:])(0?[1-9]|1[0-2])(:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?)(?:[ ]|"
    + _SPACES
    + rb")?([AaPp])[Mm]\b"
)
# `May  6 03:12:07 host ...`: the year is not known.
_MONTHS = rb"Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_MONTH_AND_DAY = re.compile(
    rb"(?m)^([\[(<]?)("
    + _MONTHS
    + rb") {1,2}([0-9]{1,2})(?= [0-9]{2}:[0-9]{2}:[0-9]{2}(?! [0-9]{4}))"
)
_LEAP_YEAR = 2000
# `[05/06 03:12:07]`: which is the month is not known.
_TWO_NUMBERS = re.compile(rb"(?m)^([\[(<]?)[0-9]{2}/[0-9]{2} (?=[0-9]{2}:[0-9]{2}:[0-9]{2})")
# Names behind their values: `MiB Mem : 64215.3 total, 1034.2 free, 20120.4 used`.
_PART = rb"(" + _VALUE + rb")([KMGTkmgt]i?[Bb]?(?=[ ]))?[ ]?([A-Za-z][A-Za-z/]*)"
# "97696 total in 5 blocks; 13168 free (7 chunks); 84528 used"
_COUNTED = rb"(?:[ ]in[ ][0-9]+[ ][a-z]+|[ ]\([0-9]+[ ][a-z]+\))?"
_EACH_PART = re.compile(_PART)
_NAMED_BEHIND = re.compile(
    rb"(?P<about>[A-Za-z][A-Za-z ]{0,24}?)[ ]?:[ ]{0,8}"
    rb"(?P<parts>(?:" + _PART + _COUNTED + rb"[,;][ ]{1,8})+" + _PART + rb")(?=[\s.]|$)"
)
# One of them is what is in use.
_IN_USE = re.compile(rb"[ 0-9](?:used|alloc|allocated|reserved)\b", re.I)
# `1h 05m`, `3 mins 14.9 secs`: a duration in several units, the larger ones first.
_UNITS_S = {b"d": 86400.0, b"h": 3600.0, b"m": 60.0, b"s": 1.0}
_OF_TIME = rb"(?:d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![A-Za-z])"
_SPAN_PART = rb"[0-9]{1,9}(?:\.[0-9]{1,9})?[ ]?" + _OF_TIME
_SPAN = re.compile(
    rb"(?<![\w.:/-])" + _SPAN_PART + rb"(?:,?[ ]?(?:and )?" + _SPAN_PART + rb"){1,3}"
)
_SPAN_PARTS = re.compile(rb"([0-9.]+)[ ]?([dhms])")
# `kl. 08.30`, as in Danish, Norwegian, Swedish and Finnish.
_AFTER_KL = re.compile(
    rb"(?m)^([^\w\n]{0,8})kl(?:\.|o\.?|okken)? ?([0-9]{1,2})[.:]([0-9]{2})(?![0-9.,:])"
)
# `on 31000: cache 420 MB`, as alive-progress prints it beside its bar.
_AT_START = re.compile(rb"(?m)^(?:on|at) ([0-9]{1,18})(?=: )")
# What stands between the parts of `batch 3 done / memory: 812 MB / threads: 4`, but not in
# `used / total: 3 / 4 GB`.
_SLASH = re.compile(
    rb" / (?=[A-Za-z_\x80-\xff][^/:=\n]{0,40}[:=][ ]?[-+]?[0-9]"
    rb"(?![0-9.,]*[ ]?[A-Za-z%]{0,8}[ ]?/[ ]?[0-9]))"
)
# `MiB Swap: 2048.0 total, ... 0.0 used.  24536.2 avail Mem`, as top prints it.
_AVAILABLE = re.compile(
    rb"\b([KMGTP]iB) Swap *:([^\n.]{0,80}\.[^\n]{0,80}) used\. +([0-9.]{1,16})[ +]avail Mem"
)
# `init = 268435456(262144K) used = 98304(96K)`, as Java prints its `MemoryUsage`.
_IN_KIB_TOO = re.compile(rb"\b(init|used|committed|max) = ([0-9]{1,19})\([0-9]{1,16}K\)")
# `memory = 1422.08 (MB)`; `inuse: 33, idle: 12, sys: 45 (MB)`, where one unit is of all.
_UNIT_IN_BRACKETS = re.compile(rb"([:=] ?[0-9][0-9.,]{0,20}) \(([KMGT]i?B)\)")
_OF_ALL = rb"[A-Za-z_]{1,40}: [0-9.]{1,20}"
_UNIT_OF_ALL = re.compile(
    rb"((?:\b" + _OF_ALL + rb", ){1,16})(?=" + _OF_ALL + rb" \(([KMGT]i?B)\))"
)
_OF_PAIRS = re.compile(rb"([A-Za-z_]+)(: [0-9.]+)")
# `Size: 0xdc1d24a (230806090) bytes`
_HEXADECIMAL = re.compile(rb"\b0x[0-9a-fA-F]{1,16} \(([0-9]{1,19})\)")
# `"used" => 531538687L`, as JBoss prints Java's `MemoryUsage`.
_LONG_OF_JAVA = re.compile(rb"\"(init|used|committed|max)\" => ([0-9]{1,19})L\b")
# `a les 8:30 — 5 GB`, `um 8:30 6 GB`
_AT = "(?:a les|a las|à|às|ás|alle(?: ore)?|ore|um|om|at|o|ob|u|в|о)".encode()
_BEFORE_HOUR = re.compile(rb"(?mi)^([^\w\n]{0,8})" + _AT + rb" (?=[0-9]{1,2}[:h][0-9]{2}(?![0-9]))")
# `à 8 h 15 : 5 Go`, but neither `8 h 15 min: 5 GB` nor `8 h 15 GB`.
_APART = rb"(?: |" + _SPACES + rb")"
_BEHIND_TIME = _APART + "?(?:[:;|)=–—-](?![0-9])|, |[ \\t\\r]{0,8}$)".encode()
_HOUR_APART = re.compile(
    rb"(?mi)^([^\w\n]{0,8}?)(?:"
    + _AT
    + rb" )?([0-9]{1,2})"
    + _APART
    + rb"h"
    + _APART
    + rb"([0-5][0-9])(?="
    + _BEHIND_TIME
    + rb")"
)
# `41k steps`, `41k steps: 4 GB`, `1.2M iterations`, `10k requests`; no size before a name, as in
# `RSS 812M steps 40`.
_SHORT = rb"([0-9]{1,6}(?:\.[0-9]{1,3})?)"
_THOUSANDS_OF = re.compile(
    rb"(?<![\w.,/=])" + _SHORT + rb"([kKM])(?= ?([a-z]{2,16}s)\b"
    rb"(?![ :=#]{1,3}[0-9][0-9.,]{0,16}(?![0-9.,]| ?[KMGTkmgt]i?[Bb]\b)))"
)
# `step 41k`, `step: 41K`, no size of each: `per step 41K`.
_OF_THOUSANDS = re.compile(
    rb"(?i)(?<!per )(?<!each )(?<!every )\b([a-z]{2,16})([ :=#]{1,2})"
    + _SHORT
    + rb"k(?![\w.]| ?[bo]\b)"
)


def _of_thousands(found: re.Match[bytes]) -> bytes:
    is_step = recognise(found[1].decode()).axis is AxisKind.STEP
    return found[1] + found[2] + _in_full(found[3], b"k") if is_step else found[0]


def _thousands_of(found: re.Match[bytes]) -> bytes:
    """The count written out. Of requests only with a lowercase k: K and M may be units of sizes."""
    kind = recognise(found[3].decode()).axis
    is_count = kind is AxisKind.STEP or (kind is AxisKind.REQUEST and found[2] == b"k")
    return _in_full(found[1], found[2]) if is_count else found[0]


def _in_full(number: bytes, unit: bytes) -> bytes:
    return b"%.15g" % (float(number) * (1e6 if unit == b"M" else 1e3))


_Replacement = bytes | Callable[[re.Match[bytes]], bytes]
_REWRITTEN: tuple[tuple[re.Pattern[bytes], _Replacement], ...] = (
    (_THOUSANDS_OF, _thousands_of),
    (_OF_THOUSANDS, _of_thousands),
    (_UNIT_IN_BRACKETS, rb"\1 \2"),
    (_HEXADECIMAL, rb"\1"),
    (_LONG_OF_JAVA, rb"memory \1: \2 bytes"),
    (_HOUR_APART, rb"\1\2h\3"),
    (_BEFORE_HOUR, rb"\1"),
    (_IN_KIB_TOO, rb"\1 = \2 bytes,"),
    (_AFTER_KL, rb"\1\2:\3"),
    (_AT_START, rb"\1"),
    (_AVAILABLE, rb"\1 Swap:\2 used. \1 Mem avail: \3 \1"),
)
# `[9.8MiB/0.12s]`: memory and time, as Composer and Symfony print them.
_MEMORY_AND_TIME = re.compile(
    rb"\[([0-9]+(?:\.[0-9]+)?[ ]?[KMG]i?B)[ ]?/[ ]?([0-9]+(?:\.[0-9]+)?[ ]?(?:ms|s|min))\]"
)
_AT_LEAST = 4
_LOOKED_AT = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberStyle:
    """grouped: what finds numbers with separated groups of digits. units_of_all: one unit in
    brackets behind several names and values. rewritten: patterns, and what
    takes the place of what they find. decimal_commas: `3,5 MB`. listed: names and values between
    slashes. named_behind: names behind several values. held: `36.8 (60.0) MB`. half_days: times
    with AM and PM. spans: durations in several units. slashes: parts between them. timed:
    `[9.8MiB/0.12s]`. first_month: of dates without a year, 0 if there are none. two_numbers: dates
    such as `05/06`, which are left out.
    """

    grouped: tuple[re.Pattern[bytes], ...]
    units_of_all: bool
    rewritten: tuple[tuple[re.Pattern[bytes], _Replacement], ...]
    decimal_commas: bool
    listed: bool
    named_behind: bool
    held: bool
    half_days: bool
    spans: bool
    slashes: bool
    timed: bool
    first_month: int
    two_numbers: bool

    def plain(self, block: bytes) -> bytes:
        """The text with numbers of digits and points."""
        for pattern in self.grouped:
            block = pattern.sub(_without_separators, block)
        if self.units_of_all:
            block = _UNIT_OF_ALL.sub(_each_with_unit, block)
        for pattern, plain in self.rewritten:
            block = pattern.sub(plain, block)
        block = self._with_plain_times(block)
        if self.slashes:
            block = b"\n".join(map(_with_bars, block.split(b"\n")))
        if self.held:
            block = _USED_AND_HELD.sub(rb"\1\3 \2\3)", block)
        if self.listed:
            block = _LISTED.sub(_one_by_one, block)
        if self.named_behind:
            block = _NAMED_BEHIND.sub(_named_before, block)
        if not self.decimal_commas:
            return block
        return _COMMA.sub(b".", _POINTED.sub(_without_points, block))

    def _with_plain_times(self, block: bytes) -> bytes:
        if self.half_days:
            block = _HALF_DAY.sub(_of_24_hours, block)
        if self.spans:
            block = _SPAN.sub(_in_seconds, block)
        if self.timed:
            block = _MEMORY_AND_TIME.sub(rb"[memory: \1, time: \2]", block)
        if self.first_month:
            block = _MONTH_AND_DAY.sub(self._with_year, block)
        return _TWO_NUMBERS.sub(rb"\1", block) if self.two_numbers else block

    def _with_year(self, found: re.Match[bytes]) -> bytes:
        month = _month(found)
        year = _LEAP_YEAR + (month < self.first_month)
        return found[1] + b"%d-%02d-%02d" % (year, month, int(found[3]))


def number_style(block: bytes) -> NumberStyle:
    """The style of a log, from the start of its first block.

    Commas are decimal if several sizes have one or two digits after one, and none has a point; or
    if hardly any number shows anything else.
    """
    block = block[:_LOOKED_AT]
    grouped = (one for one in _GROUPED if len(one.findall(block)) >= _AT_LEAST)
    sizes = len(_COMMA_SIZE.findall(block))
    commas = sizes >= _AT_LEAST and _POINT_SIZE.search(block) is None
    marks = decimal_marks(number.decode() for number in set(_MARKED.findall(block)))
    commas |= marks[","] >= _AT_LEAST and marks["."] <= _FEW_OTHERS * marks[","]
    if len(_COMMA_THOUSANDTHS.findall(block)) >= _AT_LEAST and marks["."] == 0:
        commas |= len(_BLANK_GROUPS.findall(block)) >= _AT_LEAST
        commas |= _CYRILLIC_SIZE.search(block) is not None
    listed = len(_HAS_LIST.findall(block)) >= _AT_LEAST
    behind = sum(_IN_USE.search(one["parts"]) is not None for one in _NAMED_BEHIND.finditer(block))
    held = len(_USED_AND_HELD.findall(block)) >= _AT_LEAST
    return NumberStyle(
        grouped=tuple(grouped),
        units_of_all=len(_UNIT_OF_ALL.findall(block)) >= _AT_LEAST,
        rewritten=tuple((one, plain) for one, plain in _REWRITTEN if one.search(block)),
        decimal_commas=commas,
        listed=listed,
        named_behind=behind >= _AT_LEAST,
        held=held,
        half_days=_HALF_DAY.search(block) is not None,
        spans=len(_SPAN.findall(block)) >= _AT_LEAST,
        slashes=len(_SLASH.findall(block)) >= _AT_LEAST,
        timed=len(_MEMORY_AND_TIME.findall(block)) >= _AT_LEAST,
        first_month=0 if (dated := _MONTH_AND_DAY.search(block)) is None else _month(dated),
        two_numbers=_TWO_NUMBERS.search(block) is not None,
    )


def _month(found: re.Match[bytes]) -> int:
    return 1 + _MONTHS.split(b"|").index(found[2])


def _without_separators(found: re.Match[bytes]) -> bytes:
    digits = re.sub(rb"[^0-9.,]", b"", found[2])
    is_grouped = digits.count(b",") > 1  # one may be decimal
    return found[1] + (digits.replace(b",", b"") if is_grouped else digits)


def _each_with_unit(found: re.Match[bytes]) -> bytes:
    """The names and values with the unit behind them, but for positions."""

    def with_unit(pair: re.Match[bytes]) -> bytes:
        is_position = recognise(pair[1].decode()).part is Part.AXIS
        return pair[0] if is_position else pair[0] + b" " + found[2]

    return _OF_PAIRS.sub(with_unit, found[1])


def _without_points(found: re.Match[bytes]) -> bytes:
    return found[0] if may_be_address(found[0].decode()) else found[0].replace(b".", b"")


def _with_bars(line: bytes) -> bytes:
    """The line with bars between its parts, if there are more than two."""
    return _SLASH.sub(b" | ", line) if len(_SLASH.findall(line)) > 1 else line


def _of_24_hours(found: re.Match[bytes]) -> bytes:
    hour = int(found[1]) % 12 + 12 * (found[3] in b"Pp")
    return b"%02d" % hour + found[2]


def _in_seconds(found: re.Match[bytes]) -> bytes:
    """The duration in seconds; as it is if its units do not become smaller."""
    parts = [(float(number), _UNITS_S[unit]) for number, unit in _SPAN_PARTS.findall(found[0])]
    if any(a[1] <= b[1] for a, b in pairwise(parts)):
        return found[0]
    return b"%.15g s" % sum(number * unit_s for number, unit_s in parts)


def _named_before(found: re.Match[bytes]) -> bytes:
    parts = _EACH_PART.findall(re.sub(_COUNTED + rb"(?=[,;])", b"", found["parts"]))
    return b", ".join(
        found["about"] + b" " + name + b": " + value + unit.replace(b"k", b"K")
        for value, unit, name in parts
    )


def _one_by_one(found: re.Match[bytes]) -> bytes:
    names, values = found["names"].split(b"/"), found["values"].split(b"/")
    if len(names) != len(values):
        return found[0]
    unit = found["unit"] or b""
    return b", ".join(
        found["about"] + name + found["is"] + value + unit
        for name, value in zip(names, values, strict=True)
    )
