"""Finds what the numbers in a log's lines mean on some lines, as patterns for all lines.

The patterns are for polars, which matches any line in linear time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memdiag.recording.parsing.column_meaning import OTHER, Meaning, Part, recognise
from memdiag.recording.parsing.column_names import take_apart
from memdiag.recording.parsing.column_vocabulary import ALLOCATED, DEVICE, IN_USE, STORES
from memdiag.recording.textlog.counted_things import counted_in_front, counted_of_all, counts
from memdiag.recording.textlog.number_spans import (
    ARROW,
    BEHIND_GAP,
    BY_UNIT,
    FRACTION,
    NO_RATE,
    NO_UNIT_OR_TIME,
    NUMBER,
    OF,
    OF_TOTAL,
    OF_WORDS,
    PREPOSITIONS,
    SIZE_UNIT,
    TOTAL_BEHIND,
    UNIT,
    WHEN,
    WORDS_KEPT,
    WORDS_OF_ALL,
    Number,
    Place,
    numbers_in,
    without_when,
)
from memdiag.values.measurements import Unit

_OF_TIME = frozenset({"s", "sec", "secs", "min", "mins", "minute", "minutes"})
_OF_TIME |= frozenset({"h", "hr", "hrs", "hour", "hours"})
_ZEROS = str.maketrans("123456789", "000000000")
# A field must be in this share of the lines with the most frequent field of its kind.
_SHARE = 0.05
SEEN_AT_LEAST = 3

# Words beside a size whose unit is a letter.
_BARE_SIZE = "size"
_OF_AMOUNTS = IN_USE | frozenset({"max", "total", _BARE_SIZE, "is"})
# What has memory: "cuda 1.2 GB, cpu 3.1 GB".
_HOLDERS = frozenset({"process", "python", "cpu", "host", "driver"})
_OF_ALLOCATORS = ALLOCATED | frozenset({"reserved", "cached", "active", "current", "max", "peak"})
_RUNNING = frozenset({"process", "python", "java", "jvm", "server", "worker", "container", "pod"})

# The name of a number without words at the start of lines, and of one before a total: `3/40`.
LEADING, COUNTED = "index", "iteration"

_ONE = re.compile(r"[^0-9]*[0-9][0-9.,]*\s*[A-Za-z%]{0,5}\s*")
# `(3, 7) 512.30`: epoch and step, or layer and head.
_LEADING_PAIR = re.compile(r"^\s*[(\[][^)\]]*[)\]]")
# A named tuple or a data class: `svmem(total=67430391808, ...)`.
_PRINTED = re.compile(r"\b[A-Za-z_]\w*\((?=\w+=)")
# "[Rank 0] (after 200 iterations) memory (MB) | allocated: 12345.6"
_IN_FRONT = re.compile(r"^(?:\s*(?:\[[^\]0-9]*[0-9][^\]]*\]|\([^)0-9]*[0-9][^)]*\)))+\s*")
_HEADING_ENDS = re.compile("[:|=0-9]")
# A position at the start of a line, not the size at the start of another: `4.2 GB`.
_LEADS = rf"^[^\w]{{0,12}}({NUMBER})(){NO_UNIT_OR_TIME}"
_GARBAGE = frozenset({"gc", "garbage"})
MEMORY_WORD = re.compile(
    r"(?i)\b(?:memory|mem|ram|rss|vram|heap|alloc(?:ated)?|host|gpu|cuda|device|card|footprint)\b"
)
# The number of something before a size: "shard 3: 512 MB", "3 samples - 512 MB"; not of a moment:
# "after batch 3: 512 MB".
_NUMBERED = re.compile(
    r"(?:(\w+) )?\b(?:([A-Za-z]+)[ #]{0,2}[0-9]+\s*[:=]?|[0-9]+ ([A-Za-z]+)\W{0,8})\s*$"
)
_NUMBERED_WITHIN = 64
# What has the size beside the load of a processor, or behind a script's name, is a process.
_LOAD = re.compile(r"(?i)\bcpu\W{0,3}[0-9.]{1,6}\s?%|[0-9]\s?%\s?cpu\b")
_SCRIPT = re.compile(r"\w\.py\b")
# Of what is "at 412 MB", this share of the lines needs it. Heuristic.
_LOADED = 0.2
# "wrote 412 MB, cpu 22%", "downloaded 412 MB".
_DID = re.compile(r"(?:ed|\bwrote|\bsent|\bgot)$")
# What is counted as steps and has a size of its own.
_SIZED = frozenset({"batch", "batches", "minibatch", "sample", "samples", "frame", "frames"})
_SIZED |= frozenset({"message", "messages"})
# What holds an amount that changes.
_CACHES = frozenset({"cache", "caches"})
_ROW_OF_AMOUNTS = re.compile(
    rf"(?:(?:^|[\s,;|])[\w#.-]+=[ ]?{NUMBER}[ ]?{SIZE_UNIT}(?![\w/])){{2,}}"
)
# `300 183.84`
_PAIR = re.compile(rf"\s*([0-9]+{FRACTION})[\s,;]+{NUMBER}\s*")
# No name before a number, not even one that ends in a colon: "[young: 9K->2K(9K)] 19K->12K(99K)".
_NO_LABEL = r"(?:^|[^\w:=\s.,]\s*|[0-9][:=]?\s+|,\s+)"
# After these headings numbers without a unit are bytes.
_BYTES_HEADINGS = re.compile(r"\bp(?:full)?mem(?:ory_info)?\(|\bsvmem\(", re.I)


# What psutil prints of the machine also has lists of pages, active and inactive ones, and buffers,
# which are a part of the page cache.
_OF_MACHINE = "svmem("


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A number that occurs in many lines.

    name: its name and unit.
    scaled: a unit follows the number, which is converted to bytes when it is read.
    pattern: for `str.extract_groups`: group 1 is the number, group 2 its unit, which may be null.
    quick: for `str.extract`: numbers with the one unit `unit`; twice as fast. "" if units differ,
        or if it could match another number of the line.
    by_unit: only the unit of memory after it shows what the number is: maybe the size of a file.
    is_guessed: nothing else than its place shows that it is the amount in use of a line's sizes.
    alike: for names with digits, as in "gpu0 mem": finds the name with any other digits too.
    is_behind: its words stand behind the number.
    also: fields of the same name with the words elsewhere, for lines without this one.
    others: patterns of numbers that `pattern` finds as well, and that have a longer name:
        "GPU 0 memory usage: 5G" beside "Worker 0 memory usage: 4G", whose 0 is its own number.
    """

    name: str
    meaning: Meaning
    pattern: str
    scaled: bool = False
    quick: str = ""
    unit: str = ""
    alike: str = ""
    by_unit: bool = False
    is_guessed: bool = False
    is_of_memory: bool = True
    leads: bool = False
    others: tuple[str, ...] = ()
    is_behind: bool = False
    also: tuple[Field, ...] = ()

    def find(self, line: str) -> tuple[tuple[int, int], str] | None:
        """The place of the number in a line, and its unit; None if there is none, or none with the
        unit that the others have: a torn line ends in "rss 81".
        """
        place = self._place(line)
        if place is not None and self.others:
            found = (re.search(one, line) for one in self.others)
            if any(other is not None and other.span(1) == place[0] for other in found):
                return None
        if place is None:
            found_ = (one.find(line) for one in self.also)
            return next((there for there in found_ if there is not None), None)
        return place

    def _place(self, line: str) -> tuple[tuple[int, int], str] | None:
        if self.quick and (found := re.search(self.quick, line)):
            return found.span(1), self.unit
        found = re.search(self.pattern, line)
        if found is None or (self.scaled and not found.group(2) and found.group(1).strip("0.")):
            return None
        return found.span(1), found.group(2) or ""


def find_fields(
    lines: Sequence[str],
    counted: str = COUNTED,
    leading: str = LEADING,
    *,
    is_about_memory: bool = False,
) -> list[Field]:
    """The fields of these lines that are an axis, a metric or a fill level, metrics first.

    counted: what `7/100` counts. leading: what a number at the start of lines counts.
    is_about_memory: other lines mention memory. If nothing is found, lines with a single number at
    their end are searched again with more of their words: `Memory consumed after parsing 20.25`.
    """
    counts = {"fraction": counted, "start": leading}
    about = is_about_memory or any(map(MEMORY_WORD.search, lines))
    found = _fields_of(lines, counts, WORDS_KEPT, is_about_memory=about)
    if found:
        return found
    with_one = [line for line in lines if _ONE.fullmatch(line)]
    if not with_one:
        return []
    return _fields_of(with_one, counts, WORDS_OF_ALL, is_about_memory=about)


def _fields_of(
    lines: Sequence[str], counts: Mapping[str, str], words: int, *, is_about_memory: bool
) -> list[Field]:
    places = _Places(lines, words)
    fields = [
        (often, field)
        for place, often in places.seen.most_common()
        if (field := _field_at(place, places, counts)) is not None
    ]
    named = [(n, f) for n, f in fields if f.meaning.part is Part.METRIC]
    metrics = _frequent(
        (n, f) for n, f in named if f.scaled or not _finds_others(f, n, lines, places.named_behind)
    )
    is_placed = counts["start"] != LEADING or not _are_pairs(lines)
    if not metrics and is_placed and (plain := _plain_number(places.seen, lines)) is not None:
        metrics = [plain]
    axes = _frequent((n, f) for n, f in fields if f.meaning.part is Part.AXIS)
    if (things := _counted_things(lines)) is not None:
        axes = [*(axis for axis in axes if axis.name != things.name), things]
    fills = _frequent((n, f) for n, f in fields if f.meaning.part is Part.FILL)
    return (
        [*_own(metrics, lines, is_about_memory=is_about_memory), *axes, *fills] if metrics else []
    )


def _counted_things(lines: Sequence[str]) -> Field | None:
    """The number that counts what the lines name: `1000 files - 163.55 MiB`, `tile 1/96`."""
    found, name = counted_in_front(lines), LEADING
    if found is None:
        found, name = counted_of_all(lines), COUNTED
    if found is None:
        return None
    name = found[0] if recognise(found[0]).part is Part.AXIS else name
    return Field(name=name, meaning=recognise(name), pattern=found[1])


class _Places:
    """Where numbers are in some lines.

    seen: how often each place has one; below: in lines with the heading; mentions: in lines with a
    word of memory. units: what follows the numbers. repeated: places with several numbers in a
    line. named_behind: the words behind a number that name it, in the lines that have them. labels:
    all names before numbers; pairs: they have a current and a peak value.
    """

    def __init__(self, lines: Sequence[str], words: int) -> None:
        self.heading = _heading(lines)
        self.seen: Counter[Place] = Counter()
        self.below: Counter[Place] = Counter()
        self.mentions: Counter[Place] = Counter()
        self.units: dict[Place, Counter[str]] = {}
        self.repeated: set[Place] = set()
        self.named_behind: dict[str, str] = {}
        known: dict[str, tuple[Number, ...]] = {}
        for line in lines:
            numbers = tuple(_numbers_once(line, known, self.repeated, words))
            for number in numbers:
                self._add(number, line)
            self.mentions.update(_beside_memory(line, [number.place for number in numbers]))
        self.labels = [place.text for place in self.seen if place.kind == "label"]
        self.pairs = {"current", "peak"} <= {label.lower() for label in self.labels}
        # Other sizes are then not memory in use.
        self.has_parts = self.seen[Place("part", "")] >= SEEN_AT_LEAST

    def _add(self, number: Number, line: str) -> None:
        place = number.place
        self.seen[place] += 1
        self.below[place] += self.heading in line
        self.units.setdefault(place, Counter())[number.unit] += 1
        if place.kind == "behind":
            self.named_behind[line] = place.text


def _field_at(place: Place, places: _Places, counts: Mapping[str, str]) -> Field | None:
    """The field of a place, None unless it is an axis, a metric or a fill level."""
    if place.kind == "plain" or (places.has_parts and place.kind == "size"):
        return None
    seen, labels = places.seen[place], places.labels
    unit = places.units[place].most_common(1)[0][0]
    leads = place.kind == "start" and not unit
    own = places.heading if places.below[place] * 2 > seen else ""
    is_count = leads or place.kind == "fraction"
    name = counts[place.kind] if is_count else _name(place, unit, own, pairs=places.pairs)
    meaning = OTHER if _is_count(place, unit) else recognise(name)
    if place.kind == "fraction" and meaning is OTHER:  # "items cached"
        meaning = recognise(COUNTED)
    if meaning.unit is Unit.COUNT and unit:  # "wrote 812 buffers (4.9%)"
        meaning = OTHER
    if (
        meaning is OTHER
        and place.kind == "label"
        and not (unit or STORES.isdisjoint(take_apart(name).words))
    ):
        meaning = Meaning(part=Part.FILL)
    if meaning.part not in {Part.METRIC, Part.AXIS, Part.FILL}:
        return None
    # (Of two numbers with one name the quick pattern may miss the first.)
    quick = place.kind == "label" and len(places.units[place]) == 1
    quick = quick and place not in places.repeated and (bool(unit) or meaning.part is Part.AXIS)
    is_repeated = place.kind == "label" and place in places.repeated
    has_units = "" not in places.units[place]
    figure = _FIGURE_WITH_UNIT if is_repeated and has_units else _ANY_FIGURE
    is_of_memory = _is_of_memory(name) or places.mentions[place] * 2 > seen
    return Field(
        name=name,
        meaning=meaning,
        pattern=_LEADS if leads else _pattern(place, labels, figure),
        scaled=bool(unit),
        quick=_pattern(place, labels, _quick_figure(unit)) if quick else "",
        unit=unit,
        alike=_pattern(place, labels, digits="[0-9]") if place.has_digits else "",
        by_unit=place.kind in BY_UNIT or not (is_of_memory or _is_level(place, labels)),
        is_guessed=place.kind == "size" or place == Place("fraction", ""),
        is_of_memory=place.kind not in BY_UNIT and is_of_memory,
        leads=leads,
        is_behind=place.kind == "behind",
        others=tuple(
            _pattern(Place("label", one), labels)
            for one in labels
            if place.kind == "label"
            and re.search(rf"[^\W0-9].*[0-9]\s+{re.escape(place.text)}$", one)
        ),
    )


def _finds_others(
    field: Field, seen: int, lines: Sequence[str], named_behind: Mapping[str, str]
) -> bool:
    """Return True if the field's name stands before other numbers more often than before its own,
    or before numbers that different words behind them name: `MALLOC: 9 (0.1 MiB) Bytes in use`.

    named_behind: these words in the lines that have them.
    """
    found = [line for line in lines if field.find(line) is not None]
    names = {named_behind[line] for line in found if line in named_behind}
    return len(found) > 2 * seen or len(names) > 1


def _beside_memory(line: str, places: Sequence[Place]) -> Sequence[Place]:
    """The places for which a word of memory stands in the line, and not in the name of another.
    Beside a name with one, a mere "size" is of something else: `in memory (size 4 KB, free 9 MB)`.
    """
    if not MEMORY_WORD.search(line):
        return ()
    labels = [place for place in places if place.kind == "label"]
    for label in labels:
        line = line.replace(label.text, " ")
    if MEMORY_WORD.search(line):
        named = any(_is_of_memory(label.text) for label in labels)
        return [place for place in places if not named or place.text.lower() != _BARE_SIZE]
    return [label for label in labels if MEMORY_WORD.search(label.text)]


def _own(metrics: Sequence[Field], lines: Sequence[str], *, is_about_memory: bool) -> list[Field]:
    """Drop numbers known only by their unit that mostly belong to a field with a name, or stand
    beside readings that a word of memory names; without such a word, the sizes of things.
    """
    if any(
        f.is_of_memory and f.meaning.unit is not Unit.COUNT and not f.meaning.capacity
        for f in metrics
    ):
        row = _in_a_row(metrics, lines)
        return [f for f in metrics if not f.by_unit or f.name in row]
    named = _without_repeated(metrics, lines)
    if is_about_memory:
        return named
    return [f for f in named if not f.by_unit or not _is_of_things(f, lines)]


def _in_a_row(metrics: Sequence[Field], lines: Sequence[str]) -> set[str]:
    """Names of the fields that are mostly in a row of amounts with one that a device and perhaps
    its allocator name: `browser=118MB gpu=156MB tab#3=205MB`, `mps allocated=1.4GB driver=2.7GB`.
    What they have is all of one kind.
    """
    devices = [f for f in metrics if not f.by_unit and _is_of_device(take_apart(f.name).words)]
    others = [f for f in metrics if f.by_unit and not f.is_guessed]
    if not devices or not others:
        return set()
    found: Counter[str] = Counter()
    together: Counter[str] = Counter()
    for line in lines:
        rows = [row.span() for row in _ROW_OF_AMOUNTS.finditer(line)]
        starts = [place[0][0] for f in devices if (place := f.find(line)) is not None]
        rows = [(a, b) for a, b in rows if any(a <= at < b for at in starts)]
        for field in others:
            if (place := field.find(line)) is not None:
                found[field.name] += 1
                together[field.name] += any(a <= place[0][0] < b for a, b in rows)
    return {name for name, often in together.items() if often * 2 > found[name]}


def _is_of_device(words: Sequence[str]) -> bool:
    return not DEVICE.isdisjoint(words) and (DEVICE | _OF_ALLOCATORS).issuperset(words)


def _is_of_things(field: Field, lines: Sequence[str]) -> bool:
    """Return True if most of the sizes follow the name or the number of what may have a size:
    "saved weights 412 MB", "shard 3: 512 MB"; not a moment, a device, a process, an amount of a
    total, or what comes again with its number: "web-0: 1.2 GiB, web-1: 1.1 GiB".
    """
    if field.alike:
        return False
    is_script = _SCRIPT.search(field.name) is not None
    words = take_apart(field.name).words
    did = _DID.search(" ".join(words)) is not None
    is_moment = not PREPOSITIONS.isdisjoint(words[-1:])
    found = things = loaded = 0
    for line in lines:
        if (place := field.find(line)) is not None:
            (start, end), unit = place
            thing = _numbered(line[:start]) if field.is_guessed else field.name
            is_part = OF_TOTAL.match(line[end:].lstrip().removeprefix(unit)) is not None
            found += 1
            has_load = _LOAD.search(line) is not None and not did
            loaded += has_load
            things += bool(thing) and not (is_part or is_script or has_load) and _has_size(thing)
    is_process = is_moment and loaded >= max(SEEN_AT_LEAST, _LOADED * found)
    return things * 2 > found and not is_process


def _numbered(before: str) -> str:
    """What the number at the end counts, "" if that is a moment or there is none."""
    found = _NUMBERED.search(before[-_NUMBERED_WITHIN:])  # (a long line takes quadratic time)
    return "" if found is None or (found[1] or "").lower() in PREPOSITIONS else found[2] or found[3]


def _has_size(thing: str) -> bool:
    words = take_apart(thing).words
    is_moment = recognise(" ".join(words)).part in {Part.AXIS, Part.LABEL, Part.METRIC}
    is_moment = is_moment or _CACHES.issuperset(words)
    return not is_moment or not _SIZED.isdisjoint(words)


def _without_repeated(metrics: Sequence[Field], lines: Sequence[str]) -> list[Field]:
    """Of fields that find the same numbers by their unit and by words that are not of memory, those
    that find more of them: "epoch 1: 3.2 GB" and "epoch 2 done, now at 3.9 GB".
    """
    places = {f.name: _places(f, lines) for f in metrics}
    dropped: set[str] = set()
    for unnamed in (f for f in metrics if f.by_unit):
        ours = places[unnamed.name]
        named = [f for f in metrics if not f.by_unit]
        most = max((len(ours & places[f.name]) for f in named), default=0)
        if most * 2 > len(ours):
            dropped.add(unnamed.name)
        else:
            dropped |= {f.name for f in named if not f.is_of_memory and places[f.name] <= ours}
    return [f for f in metrics if f.name not in dropped]


def _places(field: Field, lines: Sequence[str]) -> set[tuple[int, int]]:
    """The lines in which the field has a number, and where it begins."""
    found = ((n, field.find(line)) for n, line in enumerate(lines))
    return {(n, place[0][0]) for n, place in found if place is not None}


def _numbers_once(
    line: str, known: dict[str, tuple[Number, ...]], repeated: set[Place], words: int
) -> Iterable[Number]:
    """The line's numbers, one of each place, remembered for lines that differ only in digits
    (unless a name has digits). Places with several numbers in a line are added to `repeated`.
    """
    form = line.translate(_ZEROS)
    if form in known:
        return known[form]
    found = tuple(numbers_in(line, words))
    often = Counter(number.place for number in found)
    repeated.update(place for place, count in often.items() if count > 1)
    numbers = tuple({number.place: number for number in found}.values())
    if not any(number.place.has_digits for number in numbers):
        known[form] = numbers
    return numbers


def _heading(lines: Sequence[str]) -> str:
    """The words that most lines begin with, before the first colon or number; or the type of the
    value that most lines print: `svmem(` of "step 3 svmem(total=5, used=3)".
    """
    printed = Counter(found.group() for line in lines if (found := _PRINTED.search(line)))
    if printed and printed.most_common(1)[0][1] * 2 > len(lines):
        return printed.most_common(1)[0][0]
    bare = (_IN_FRONT.sub("", line) for line in lines)
    starts = Counter(_HEADING_ENDS.split(line, maxsplit=1)[0].strip() for line in bare)
    return starts.most_common(1)[0][0] if starts else ""


def _name(place: Place, unit: str, heading: str, *, pairs: bool = False) -> str:
    """A name that `recognise` understands.

    pairs: lines have a current and a peak value, as memory has.
    """
    if place.kind in BY_UNIT or place == Place("later", ""):
        return f"memory ({unit})" if unit else "later"
    if place.kind == "start":
        return {"s": "time (s)", "ms": "time (ms)", "h": "time (h)"}.get(unit, "start")
    label = without_when(place.text) if place.kind == "beyond" else place.text
    around = _about(heading)
    words = set(label.lower().split())
    if place.kind == "later" and _GARBAGE & words:  # "[Full GC 9K->2K(9K)]"
        label = "heap left by full GC" if "full" in words else "heap left by GC"
    if words <= PREPOSITIONS and unit in _OF_TIME:  # "after 10 min: 1.1 GB"
        return f"time ({unit})"
    known = recognise(label)
    if known.part is Part.OTHER and not unit and _is_qualifier(label):
        about_memory = recognise(f"{around} {label}").part is Part.METRIC
        label = f"memory {label}" if pairs and not about_memory else f"{around} {label}"
    stem = re.sub(r"\(s\)|\(?in \w+\)?", "", label)
    if known.unit is Unit.BYTES and recognise(stem).part is Part.AXIS:
        label = f"{around} {label.removeprefix(stem.strip())}"  # Memory usage after 3 runs (in MiB)
    if heading == _OF_MACHINE and known.unit is Unit.COUNT:
        return f"pagecache {label} (bytes)"
    if known.part is Part.AXIS or known.unit is not None:
        has_size = known.unit is Unit.COUNT and place.kind == "label" and _is_size(unit)
        return f"{label} ({unit})" if has_size else label  # "183 nodes malloced for 86 KB"
    is_of_pages = heading == _OF_MACHINE and recognise(label).part is Part.OTHER
    has_own = label.endswith(")")  # "CPU(s)" below "WS(MB)"
    if not unit and not is_of_pages and known.part is not Part.LABEL and not has_own:
        unit = "%" if "percent" in label.lower() else _unit_of_heading(heading)
    return f"{label} ({unit})" if unit else label


def _is_size(unit: str) -> bool:
    """Return True for a unit of memory; a letter alone may be of thousands."""
    return len(unit) > 1 and re.fullmatch(SIZE_UNIT, unit) is not None


def _is_of_memory(name: str) -> bool:
    """Return True if the words say memory, or count objects, without the unit after them."""
    label = name.rpartition("(")[0] if name.endswith(")") else name
    meaning = recognise(label)
    return meaning.part is Part.METRIC and not meaning.by_unit


def _is_level(place: Place, labels: Sequence[str]) -> bool:
    """Return True if the words or the place show an amount at a moment, not the size of a thing:
    "in use 3 GB", "after backward 3 GB", "9 MB -> 4 MB", "MA 3 GB Max_MA 5 GB", not "saved weights
    412 MB" or "checkpoints total 9 GB".
    """
    words = take_apart(place.text).words
    has_peak = any(take_apart(label).words == ("max", *words) for label in labels)
    is_amount = (_OF_AMOUNTS | _HOLDERS).issuperset(words) or not IN_USE.isdisjoint(words)
    is_amount = is_amount and words not in {(), (_BARE_SIZE,)}
    is_moment = not PREPOSITIONS.isdisjoint(words[:1])
    is_moment |= words[-1:] == ("at",) and not _RUNNING.isdisjoint(words)  # "Java process at 3 GB"
    return place.kind != "label" or has_peak or is_amount or is_moment


def _is_count(place: Place, unit: str) -> bool:
    """Return True for "rows 228K" and "tokens 2.1B": letters alone are thousands as well as bytes,
    so that they need a word of memory before them.
    """
    if len(unit) != 1 or place.kind != "label" or recognise(unit).axis is not None:
        return False
    words = set(place.text.lower().split())
    return recognise(place.text).part is Part.OTHER and words.isdisjoint(_OF_AMOUNTS)


def _about(heading: str) -> str:
    words = re.sub(r"\(\w*$", "", heading).split()
    return " ".join(word for word in words if word.lower() not in PREPOSITIONS)


def _unit_of_heading(heading: str) -> str:
    """`Mem memory (MB) | allocated: 20.4`, `pfullmem(rss=415825920, ...)`."""
    in_brackets = re.search(r"\(([KMGT]i?B)\)", heading)
    if in_brackets:
        return in_brackets.group(1)
    return "bytes" if _BYTES_HEADINGS.search(heading) else ""


def _is_qualifier(label: str) -> bool:
    """Return True for `current`, `peak` and the like, which qualify the line's heading."""
    words = set(label.lower().split())
    return words <= {"current", "peak", "max", "now", "used", "usage", "total", "cur", "is", "at"}


# Between a name and its number, which may be far away in a column of its own.
_GAP = r"[^0-9A-Za-z+\-.]{0,60}"
# `rss - 812 MB`
_DASH = r"(?:-|\s+-\s)?"
_ANY_FIGURE = rf"({NUMBER})(?:(?:{OF})?[ ]?({UNIT}))?"
# Where all have a unit: "32% used (5842 of 15884 MB) used=5842MB".
_FIGURE_WITH_UNIT = rf"({NUMBER})(?:{OF})?[ ]?({UNIT})"


def _quick_figure(unit: str) -> str:
    """A number before this unit. Numbers with thousands separators do not match and are searched
    again.
    """
    figure = rf"[-+]?[0-9]+{FRACTION}" if unit else NUMBER
    return f"({figure})[ ]?{unit}"


def _pattern(
    place: Place, labels: Sequence[str], figure: str = _ANY_FIGURE, digits: str = ""
) -> str:
    """digits: a pattern for each digit of the name, "" for the digit itself."""
    label = _escaped(place.text)
    label = re.sub("[0-9]", digits, label) if digits else label
    if place.kind == "label":
        shadowed = any(other != place.text and other.endswith(place.text) for other in labels)
        before = r"(?:^|[^\w\s]|[0-9]\w*|\s\s)\s*" if shadowed else _before(place.text)
        return rf"{before}{label}{_DASH}{_GAP}{figure}(?:[^0-9A-Za-z_]|$)"
    if place.kind in {"later", "share"}:
        named = rf"{_before(place.text)}{label}{_GAP}" if label else _NO_LABEL
        earlier = rf"(?:{NUMBER}(?:[ ]?{UNIT})?{ARROW})+"
        others = earlier if place.kind == "later" else rf"{NUMBER}\s?%\s*[(\[]\s*"
        return rf"{named}{others}{figure}(?:[^0-9A-Za-z_]|$)"
    if place.kind == "beyond":
        before = _before(place.text) + _beyond(place.text, digits)
        return rf"{before}[^0-9A-Za-z+\-.]*(?:is|was)?\s*{figure}(?:\W|$)"
    if place.kind == "before":
        return rf"(?:^|[^\w.]){figure}\s*{re.escape(place.text)}\b"
    if place.kind == "fraction":
        first = rf"{_before(place.text)}{label}{_GAP}[0-9]+/[0-9]+[^A-Za-z]*?"
        start = rf"{first}[^\w.]" if label else r"(?:^|[^\w.])"
        return rf"{start}([0-9]+)()/[0-9]+(?:\D|$)"
    if place.kind in {"size", "part", "within", "behind"}:
        return _pattern_of_size(place.kind, label)
    if place.kind == "start":
        return rf"^[^\w]{{0,12}}{figure}(?:[^0-9A-Za-z_]|$)"
    return rf"[:=\s]\s*({NUMBER})()\s*$"


def _pattern_of_size(kind: str, label: str) -> str:
    amount = rf"(?:^|[^\w.+\-])({NUMBER})"
    if kind == "behind":
        return rf"{amount}[ ]?({SIZE_UNIT})(?:{TOTAL_BEHIND})?\)?{BEHIND_GAP}{label}(?:\W|$)"
    if kind == "part":
        return rf"{amount}[ ]?({SIZE_UNIT})\s*(?:/|{OF_WORDS}\s)"
    part = rf"[|;]\s*{label}\b[^|;]*?" if label else ""
    return rf"{part}{amount}(?:{OF})?[ ]?({SIZE_UNIT}){NO_RATE}"


def _before(text: str) -> str:
    """Words of other scripts follow a number without a blank."""
    return r"(?:^|\W)" if text[:1].isascii() else r"(?:^|\W|[0-9])"


def _beyond(text: str, digits: str) -> str:
    parts = []
    for piece in text.split(WHEN):
        escaped = _escaped(piece)
        parts.append(re.sub("[0-9]", digits, escaped) if digits else escaped)
    return rf"{_GAP}[0-9]+\s*".join(parts)


def _escaped(label: str) -> str:
    """A pattern for these words with any blanks between them."""
    return r"\s*".join(map(re.escape, re.findall(r"\w+|[^\w\s]", label)))


def _frequent(fields: Iterable[tuple[int, Field]]) -> list[Field]:
    """The fields that occur often enough; each name once, but for a size before the words that
    stand behind others: "working set 303 MB", "443 MB working set".
    """
    counted = list(fields)
    most = max((n for n, _ in counted), default=0)
    often = [f for n, f in counted if n >= max(SEEN_AT_LEAST, _SHARE * most)]
    kept = {(f.name, f.is_behind): f for f in reversed(often)}
    return list(kept.values())[::-1]


def _are_pairs(lines: Sequence[str]) -> bool:
    """Return True if most lines are two bare numbers of which the first does not count the lines:
    either may be the memory.
    """
    pairs = [found for line in lines if (found := _PAIR.fullmatch(line)) is not None]
    return len(pairs) * 2 > len(lines) and not counts([float(pair[1]) for pair in pairs])


def _plain_number(seen: Counter[Place], lines: Sequence[str]) -> Field | None:
    """The single number of lines such as `i=300: 183.84`, whose unit is unknown.

    Of several (`300 183.84 20.5`) any could be memory.
    """
    place = Place("plain", "")
    others = [p for p in seen if p.kind == "label" and recognise(p.text).part is not Part.AXIS]
    if seen[place] < 0.8 * len(lines) or any(seen[p] > 0.2 * len(lines) for p in others):
        return None
    rest = (_LEADING_PAIR.sub("", line) for line in lines)
    several = sum(sum(n.place == place for n in numbers_in(line)) > 1 for line in rest)
    if several > 0.2 * len(lines):
        return None
    name = _title(lines)
    return Field(name=name, meaning=recognise(name), pattern=_pattern(place, ()))


def _title(lines: Sequence[str]) -> str:
    """What a line above numbers says that they are: `node-2: Available memory`."""
    titles = (line.rpartition(":")[2].strip() for line in lines)
    named = {title for title in titles if title and not any(map(str.isdigit, title))}
    named = {title for title in named if recognise(title).part is Part.METRIC}
    return named.pop() if len(named) == 1 else "memory"
