"""Records printed again and again: lines of one name and value each (`mem = 12 kb`, `STAT bytes 9`,
`rss | 141 MB`, `MESSAGE=step 3 rss 812 MB`, `812 - MemoryUsage (MB)`), below rules or times.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.tables.table import Table
from memdiag.values.measurements import AxisKind, Unit

_HOST = r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}\.)?"  # Flink's names begin with an address
_NAME = _HOST + r"[A-Za-z_][\w.:/()\[\]%\\-]*(?: [A-Za-z(\[%][\w.:/()\[\]%\\-]*){0,4}?"
_WITH_SIGN = re.compile(rf"\W*?({_NAME})\s*(?:=|\||:(?=\s))\s*([^\s|][^|]*)")
_WITH_BLANK = re.compile(r"(?:[A-Z]+ ([A-Za-z_][\w.]*)\s+(\S+)|([A-Za-z_][\w.]*)\s+([0-9]\S*))")
_BEHIND = re.compile(r"([0-9][0-9.,]*)\s+-\s+([A-Za-z][\w .()]*)")
# "-----", "-[ RECORD 1 ]-+---", "*** 1. row ***", "== run 3 ==".
_RULE = re.compile(r"\W*|\W{2,}(?:([A-Za-z]+)\s+([0-9]+)|[^-=*]{0,24})\W{2,}")
_WORD = re.compile("[A-Za-z]+")
_COUNT = re.compile(r"(?<![\w:.])[0-9]{1,12} ([a-z]{3,16})\b")  # `handled 1000 messages`
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}")
_STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?")
_SIZE = re.compile(r"(?i)[0-9]\s?[KMGT]i?B\b|(?:mem|rss|ram|heap).*[0-9]")
_QUANTITY = re.compile(r"(?:[A-Z]\w*: )?[0-9][0-9.,_]*(?:\s?[A-Za-z]{1,5})?")
# PowerShell's Get-Counter prints a time and a name in one line, and the value below.
_TIMED = re.compile(r"(\S+ [0-9]{1,2}:[0-9]{2}:[0-9]{2}(?: [AP]M)?)\s{2,}(\S.*)")
# "[epoch=1][batch=25/4800]:"
_IN_BRACKETS = re.compile(r"\[([A-Za-z_]\w*)=([^][=]+)\]\s*")
_HEADING = re.compile(rf"(?:{_IN_BRACKETS.pattern})+:?")
_ALONE = re.compile(r"[0-9][0-9.,]*")
_WHOLE = "^[0-9]{1,18}$"
_LONGEST, _LONGEST_RULE = 2000, 200
_RECORDS_AT_LEAST = 3
# Of the lines, and of the readings below a name of memory: other texts have some such lines too.
_SHARE = 0.85
_TIME = "time"
_MESSAGE = "MESSAGE"  # of `journalctl -o export`
_OF_TRAINING: frozenset[AxisKind | None] = frozenset({AxisKind.STEP, AxisKind.EPOCH})
_OF_RULES = _OF_TRAINING | {AxisKind.INDEX}


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a record; a time above records has no name, and a rule neither.

    begins: the position in a rule, with which a record begins.
    """

    name: str = ""
    value: str = ""
    begins: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Records:
    """rows: of each record the values by their names.

    above: names and values above the first record.
    share: the part of the lines that belong to records.
    """

    rows: Sequence[dict[str, str]]
    above: dict[str, str]
    share: float


def has_records(source: Source) -> bool:
    """Return True if nearly all lines of the head are of records with a name of memory and a
    position or time.
    """
    lines = source.head().split("\n")
    records = _records(lines if source.whole else lines[:-1])
    often = Counter(name for row in records.rows for name in row)
    names = [name for name, count in often.items() if count * 2 > len(records.rows)]
    return (
        len(records.rows) >= _RECORDS_AT_LEAST
        and records.share >= _SHARE
        and any(recognise(name).part is Part.AXIS for name in names)
        and any(name == _MESSAGE or _is_memory(name, records.rows) for name in names)
    )


def read_records(source: Source) -> Table:
    """One row per record, with the time above it."""
    records = _records(source.all_bytes().decode("utf-8", errors="replace").split("\n"))
    names = list(dict.fromkeys(name for row in records.rows for name in row))
    frame = pl.DataFrame({name: [row.get(name) for row in records.rows] for name in names})
    whole = [name for name in names if frame[name].str.contains(_WHOLE).all()]
    frame = frame.with_columns(pl.col(whole).cast(pl.Int64))
    units = {name: records.above.get(f"{name}_unit") for name in names}  # `time_unit: ms`
    return Table.of(frame.rename({name: f"{name}_{unit}" for name, unit in units.items() if unit}))


def _is_memory(name: str, rows: Iterable[dict[str, str]]) -> bool:
    """Return True for the name of an amount that is one in nearly all records."""
    meaning = recognise(name)
    if meaning.part is not Part.METRIC or meaning.unit is Unit.COUNT or meaning.capacity:
        return False
    values = [row[name] for row in rows if name in row]
    return sum(_QUANTITY.fullmatch(value) is not None for value in values) >= _SHARE * len(values)


def _records(lines: Iterable[str]) -> _Records:
    """The records, which end where a name comes again, or the one that most begin with."""
    parts = list(map(_line, _joined(line[:_LONGEST].strip() for line in lines)))
    lead = _lead(parts)
    first = next((n for n, part in enumerate(parts) if part and part.name == lead), len(parts))
    above = [part for part in parts[:first] if part is not None]
    time = next((part.value for part in above[::-1] if part.value and not part.name), "")
    rows: list[dict[str, str]] = []
    own = others = 0
    dated = ""  # the name of the time above, until the record has one of its own
    for part in parts[first:]:
        if part is None:
            others += 1
        elif part.name:
            if not rows or (part.name in rows[-1] and part.name != dated) or part.name == lead:
                dated = _TIME if time and part.name != _TIME else ""
                rows.append({_TIME: time} if dated else {})
            dated = "" if part.name == dated else dated
            rows[-1][part.name] = part.value
            own += 1
        else:
            time = part.value or time
    named = {part.name: part.value for part in above if part.name}
    return _Records(rows=rows, above=named, share=own / max(1, own + others))


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """The lines, with a time in front on its own, a number alone behind the name above it, and each
    value of a heading in brackets by itself.
    """
    above = ""
    for line in chain.from_iterable(map(_parts, lines)):
        timed = _TIMED.fullmatch(line)
        if above:
            is_value = _ALONE.fullmatch(line) is not None
            yield f"{above} {line}" if is_value else above
            above = ""
            if is_value:
                continue
        if timed is not None:
            yield timed[1]
        rest = line if timed is None else timed[2]
        if rest.endswith(":"):
            above = rest
        else:
            yield rest
    if above:
        yield above


def _parts(line: str) -> list[str]:
    if _HEADING.fullmatch(line) is None:
        return [line]
    return [f"{name} = {value}" for name, value in _IN_BRACKETS.findall(line)]


def _lead(parts: Sequence[_Line | None]) -> str:
    """The name that most records begin with: the most frequent below times, rules and others."""
    leads: Counter[str] = Counter()
    is_above = True
    for part in parts:
        if part is not None and part.name and (is_above or part.begins):
            leads[part.name] += 1
        is_above = part is None or not part.name
    return leads.most_common(1)[0][0] if leads else ""


def _line(line: str) -> _Line | None:
    """None for other lines."""
    if (found := _WITH_SIGN.fullmatch(line)) is not None:
        return _Line(found[1], found[2].strip(), begins=line.startswith("- "))  # of YAML
    if (found := _BEHIND.fullmatch(line)) is not None:
        return _Line(found[2], found[1])
    if _CLOCK.search(line):
        has_more = _SIZE.search(line) or _has_word(line, _OF_TRAINING) or _counts_requests(line)
        stamp = _STAMP.search(line)
        return None if has_more else _Line(value=stamp.group() if stamp else line)
    if len(line) <= _LONGEST_RULE and (found := _RULE.fullmatch(line)) is not None:
        is_position = _has_word(found[1] or "", _OF_RULES)
        return _Line(found[1], found[2], begins=True) if is_position else _Line()
    found = _WITH_BLANK.fullmatch(line)
    return None if found is None else _Line(found[1] or found[3], found[2] or found[4])


def _has_word(line: str, kinds: frozenset[AxisKind | None]) -> bool:
    """Return True if a word is the name of a position."""
    return any(recognise(word).axis in kinds for word in _WORD.findall(line))


def _counts_requests(line: str) -> bool:
    return any(recognise(word).axis is AxisKind.REQUEST for word in _COUNT.findall(line))
