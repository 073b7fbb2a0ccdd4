"""Finds the numbers of a line and names them by the words around them.

A number is named by the words before it (`rss 823 MB`, `Peak mem 100.759 GB`, `memory: 6814`), or
by the word after it (`6529 tensors`), or by its place and unit alone (`Step 80: 17,412 MB`). A
number among the words may be a step (`Memory after step 10: 512 MB`) or an index
(`memory_reserved(1)`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.column_names import HOLDER
from memdiag.values.measurements import AxisKind, Unit

FRACTION = r"(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
NUMBER = rf"[-+]?(?:[0-9]{{1,3}}(?:,[0-9]{{3}})+|[0-9]+){FRACTION}"
_SPELT_OUT = "(?:[Kk]ilo|[Mm]ega|[Gg]iga|[Kk]ibi|[Mm]ebi|[Gg]ibi)[Bb]ytes?|[Mm]egs?|[Gg]igs?"
SIZE_UNIT = rf"(?:{_SPELT_OUT}|[kKMGT]i?B|[kKMG]i?o|[КМГТ]Б|[KMGTkmgt]i?b|[KMG]i?|[Bb]ytes?|B)"
UNIT = rf"(?:{SIZE_UNIT}|%|secs?|s|ms|mins?|minutes?|hrs?|hours?|h)"
_NO_TIME = r":(?:$|[^0-9]|[0-9](?:$|[^0-9])|[0-9]{3})"
_NO_SIZE = r"\s*[^\w\s%.:]|\s+(?:[^\sKMGTkmgtBb%]|[A-Za-z][A-HJ-XZa-hj-xz][A-Za-z])"
NO_UNIT_OR_TIME = rf"(?:\s*$|{_NO_TIME}|{_NO_SIZE})"
"""What may follow a number that is not a size and not the hour of a time, `45:10`."""
_OF_TIME = re.compile(":[0-9]{2}(?![0-9])")
# Used and total, with one unit: `2571/15817MB`, `2571 / 15817 MB`.
OF = r"[ ]?/[ ]?[0-9][0-9.]*"
# (Words of other scripts touch their numbers.)
_SCAN = re.compile(
    rf"(?<![A-Za-z0-9_.])(?P<figure>{NUMBER})(?P<total>/[0-9]+(?![0-9.]))?"
    rf"(?:{OF}(?=[ ]?{SIZE_UNIT}\b))?[ ]?(?P<unit>{UNIT})?(?![A-Za-z0-9_])"
)
# "in memory on 10.0.0.5:41231", "RequestId: 65178467-77aa-4f1c-9c0e-...": a machine, a request;
# "container_1709540012345_0042": one of many.
_ADDRESS = re.compile(
    r"(?<![\w.])(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|[A-Za-z]+[_-][0-9]{6,}[\w-]*)(?![\w.])"
)
# "reserved 21.9 -> 21.7 GiB", "memory [12gb]->[8gb]/[16gb]": only the later value is in use.
ARROW = r"(?:\s?\([0-9.]+(?:%|[ ]?[KMG]i?B)?\)|\])?\s*(?:->|→|=>|⇒|➜)\s*\[?"
_THEN_LATER = re.compile(rf"{ARROW}{NUMBER}")
_IN_BRACKETS = re.compile(rf"\s*[(\[]\s*{NUMBER}(?:{OF})?[ ]?{SIZE_UNIT}\b")
# "MALLOC: 128353894 (122.4 MiB) Bytes in use": the words behind both name it.
_AGAIN = re.compile(rf"\s*\(\s*{NUMBER}[ ]?{SIZE_UNIT}\)\s+[A-Za-z]")
# "mem=585.49576 GBs, io=0.1": what a job had over time.
_OVER_TIME = re.compile(r"[ ]?[KMGT]i?B[ *-]?s(?:ec)?,\s+io=")
# "34MB/57MB", "1.2 GB of 4 GB", "1.2 GB used of 4 GB", in other languages too: in use, of a total.
_IN_USE = "(?:used|in use|utilisée?s?|belegt|benutzt|usad[oa]s?|utilizad[oa]s?|usat[aeio])"
OF_WORDS = rf"(?:(?:{_IN_USE}\s+)?(?:out of|of|sur|von|de|di)\b)"
TOTAL_BEHIND = rf"\s*(?:/|{OF_WORDS})\s*{NUMBER}[ ]?{SIZE_UNIT}\b"
OF_TOTAL = re.compile(TOTAL_BEHIND)
# "812 MB in use", "812 MB ── resident".
BEHIND_GAP = r"\s+(?:[-–—─]+\s+)?"
_BEHIND = re.compile(
    rf"(?:{TOTAL_BEHIND})?\)?{BEHIND_GAP}([A-Za-z_]+(?: [A-Za-z]+){{0,4}})\s*(?=[;,.)\]|]|$)"
)
# "memory_monitor.py:21": a line of code.
_FIGURE = re.compile(r"[0-9][0-9.]*[A-Za-z]")
_CODE = re.compile(r"\w\.[a-z]{1,4}:$")
# "utils.mem:report:12 - ": also one.
_FUNCTION = re.compile(r"[\w.]+:[\w<>]+:$")
# "DEBUG | app.memory:41 | ": also one.
_MODULE = re.compile(
    r"\b(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|SUCCESS)\b[\s|\]-]{1,8}\w+\.[\w.]+:$"
)
_FUNCTION_ENDS = re.compile(r"\s*[-|]\s")
# "malloc(12 KB)": one allocation.
_ALLOCATES = re.compile(r"(?i)(?:[mc]alloc|realloc|mmap|sbrk)\($")
# "1342 objects collected": no level.
_HAPPENED = re.compile(
    r"\s*\w+\s+(?:collected|freed|released|removed|deleted|created|reclaimed|loaded|processed)\b"
)
# "118MB/s", "5 MB per step", "0.7 GB/epoch": no amount.
_PER = re.compile(rf"\s?/\s?(?![0-9.]|(?i:{HOLDER}))\w|\s+per\b")
NO_RATE = (
    rf"(?:\s*$|\s*[^\s\w/]|\s*/\s*(?:[^A-Za-z\s]|(?i:{HOLDER}))"
    r"|\s+(?:[^\Wp]|p(?:[^e]|$)|pe(?:[^r]|$)|per\w))"
)
"""What may follow an amount, as a pattern without look-ahead."""
# "45%|███   |": how much is done.
_BAR = re.compile(r"\s*\|[^|\w]*\|")
_AFTER = re.compile(r"\s*([^\W\d]+)(?:\(s\))?(?!\s*[=:]|\w)")
# "after 30 images: 47 MB": nothing stands behind the size.
_AFTER_BEFORE_SIZE = re.compile(
    rf"\s*([^\W\d]+)(?=\s?:\s{{1,8}}{NUMBER}[ ]?{SIZE_UNIT}\s*(?:{_IN_USE}\s*)?(?:$|[,;(]))"
)
# "after 3 run(s)", "at step 5": the number belongs to the word that follows.
PREPOSITIONS = frozenset({"after", "at", "for", "in", "on", "during", "before"})
# "handled 1000 messages": also.
_DONE = frozenset({"handled", "processed", "served", "completed", "finished", "executed"})
# Of other languages.
PREPOSITIONS |= frozenset({"nach", "bei", "vor", "après", "avant", "à", "tras", "después", "antes"})
PREPOSITIONS |= frozenset({"após", "depois", "dopo", "prima", "na", "po"})
PREPOSITIONS |= frozenset({"после", "після", "через", "на"})
# "blocks starting from 1200": a start, not an amount.
_BOUNDS = frozenset({"from", "since", "until"})
_TOTALS = re.compile(OF_WORDS)
_RATES = frozenset({"per", "each"})
# Their words name a position, whatever stands before them.
_OF_TRAINING = frozenset({AxisKind.STEP, AxisKind.EPOCH})
# Not after a unit in brackets: "Mem(MB) used", "memory (bytes) snapshot".
_SOFT_CUT = (
    r"(?<![KMGTkmgti][Bb])(?<!bytes)(?:\)\s+|\]\s*)(?=[A-Za-z])"
    r"|(?<=\w)\((?=[A-Za-z]{2})(?![A-Za-z]{1,5}\))"
)
# "rss_mb=nan vram_mb=812": a value in words ends the name before it.
_WORDED = r"""=(?:"[^"]*"|'[^']*'|[^\s='"][^\s=]*)\s+(?=[A-Za-z_])"""
# "INFO:root:step 20", as Python's logging prints it.
_LOGGER = r"\b[A-Z]{4,}:[\w.]*:(?=[A-Za-z])"
_SENTENCE = r"(?<=[a-z]{4})\.\s+(?=[A-Z])"  # not of "Max. RSS"
_HARD_CUT = (
    rf"[,|;\t{{}}\u3001\uff0c\uff1b]|{_LOGGER}|{_SENTENCE}|[>\])]:|\s{{2,}}|:\s+(?=\S)|\s-+\s|\s?->\s?|:\["
    rf"|{_WORDED}|=[\"'](?=[A-Za-z])|(?<=[a-z])[\"']\s+(?=[A-Za-z])"
    r"|(?<=[a-z]/s)\s+(?=[A-Za-z])"  # "21.3 samples/s mem 2227MB"
)
_CUT = re.compile(f"{_HARD_CUT}|{_SOFT_CUT}")
# Not after a unit in brackets: "Memory usage (MB) at step".
_CUT_OF_ALL = re.compile(rf"{_HARD_CUT}|\]\s+(?=[A-Za-z])")
# "Phase: train Step 10": the name is "Step", not "train Step".
_TAG = re.compile(r"\b(?:phase|stage|mode|split)\s*[:=]\s*\W?[A-Za-z_][\w-]*(?=\s)", re.I)
# The key of a dictionary, as Python or JSON prints it: `'memory/max_mem_active(gib)': `.
_KEY = re.compile(r"""['"]([^'"]{1,60})['"]\s*[:=]\s*$""")
_MODEL = re.compile(r"\w-$")
_STRIP = " \t:=#-–—([{'\"*`>~<.|_@+/"
# Words that make another figure of the same words: "Max GPU memory allocated".
_QUALIFIERS = frozenset({"max", "maximum", "peak", "min", "minimum", "average", "avg", "mean"})
_QUALIFIERS |= {"current", "physical", "cumulative", "free", "available", "estimated"}
# "now rss 4.7G" is the same amount as "rss 4.0G".
_NOW = frozenset({"now", "currently", "сейчас", "зараз", "jetzt", "ahora", "agora", "maintenant"})
_USED = frozenset({"used", "in", "usage", "current", "total"})
# These alone say nothing of what has the amount.
_OF_WHOLE = frozenset({"total", "size", "value"})
WORDS_KEPT = 3
WORDS_OF_ALL = 6
_ZONE = re.compile(r"Z(?![A-Za-z0-9_])")

# "Memory at step 10 (MB): 512": between the step and the value, perhaps with its unit.
_THEN = re.compile(
    rf"\s*(?P<unit>[(\[]\s*(?:in\s+)?{SIZE_UNIT}\s*[)\]])?\s*(?:[:=]+|is|was)\s*(?={NUMBER})"
)
_PARTS = re.compile(r"[|;]")
_PART_WORDS = re.compile(r"\W*([A-Za-z_]+(?: [A-Za-z_]+){0,2}(?: ?[0-9]{1,2}(?=:))?)")
_WHOLE = re.compile("[0-9]+")
WHEN = "\0"
"""Replaces a step number in a place's text."""

# "memory_reserved(1) 608174080": an index, and then the value.
# "tab#3=205.9MB", "web-0: 1.21 GiB", "(executor-thread-7)": one of several of a kind.
_OF_MANY = re.compile(r"([A-Za-z_]\w*)[#-]$")
_OF_MANY_ENDS = re.compile(r"=|:\s+[0-9]|[)\]]")
_WHICH = re.compile(r"(\w+)[(\[]$")
_NAME_OF_INDEX = 64
_WHICH_ENDS = re.compile(r"[)\]]\s*[:=]?\s*[-+]?[0-9]")
# "GPU 0: 2796 MB", "GPU-1 memory (MB) 1400", "cuda:1 allocated 1400MB".
_DEVICE = re.compile(r"(?:^|[^A-Za-z0-9_])(?:gpu|device|cuda|card)(?:[-_# ]|:|\s#)?$", re.I)
_DEVICE_ENDS = re.compile(r"\s*[:=]\s*[-+]?[0-9]|[:,]?\s+([A-Za-z_]+)")


BY_UNIT = frozenset({"size", "part"})
"""Kinds of places that a unit of memory alone identifies: an amount, an amount of a total."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a number is: after a label, before a word, at the start, by its unit, within a part of
    the line, before words that name it, beyond a step number, in brackets behind its share of the
    whole, or later than another value ("21.9 -> 21.7 GiB").
    """

    kind: str
    text: str

    @property
    def has_digits(self) -> bool:
        """Return True if the name has digits, as in "gpu0 mem"."""
        return re.search("[0-9]", self.text) is not None


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a line and the unit after it, "" for none."""

    place: Place
    unit: str


def numbers_in(line: str, words: int = WORDS_KEPT) -> Iterable[Number]:
    """The line's numbers that may be readings or positions; the last `words` before one name it."""
    line = _ADDRESS.sub(lambda one: "-" * (len(one[0]) - 1) + ",", line)
    zone = _ZONE.match(line)  # of the time before it
    end, unlabelled, bare = zone.end() if zone else 0, 0, False
    awaited: Place | None = None  # of the next number
    is_after_size = is_later = False
    counter = ""
    for match in (found for found in _SCAN.finditer(line) if not _is_index(line, found)):
        between = line[end : match.start()]
        end = match.end()
        unit = match.group("unit") or ""
        is_named_behind = between.endswith("(") and unit and _AFTER.match(line, end)
        label = "" if is_named_behind else _label(between, words)  # "9G used (2300M wired)"
        label = "" if _counts_before_size(between, label, unit) else label
        is_behind, is_later = is_later, awaited is not None and awaited.kind == "later"
        is_total = between == "(" and (is_behind or is_later)  # "806M(20%)->222M(4096M)"
        if _THEN_LATER.match(line, end) is not None and not _is_position(label):
            awaited = awaited or Place("later", label)  # "4->4->2 MB"
        elif awaited is not None and not is_total:
            yield Number(awaited, unit)
            awaited = None
        elif is_total or _is_no_reading(between, label, match):
            continue
        elif (when := _when(between, label, line, match, is_after_size)) is not None:
            position, beyond = when
            awaited = Place("beyond", beyond) if beyond else None
            yield Number(Place("label", position), "")
        elif label and (unit or not _belongs_to_next(label, line, end)):
            yield Number(Place("label", label), unit)
            counter = label if match.group("total") and not unit else counter
            is_share = unit == "%" and _IN_BRACKETS.match(line, end)
            awaited = Place("share", label) if is_share else None  # "RAM 6.6% (4200MB of 64000MB)"
        elif not match.group("figure").startswith(("+", "-")):  # "(+1,853 MB)": an increase
            if place := _unlabelled(match, unit, label, first=unlabelled == 0, counter=counter):
                if place.kind not in BY_UNIT or not bare:
                    yield Number(place, unit)
                bare = bare or place.kind in BY_UNIT
                end = _end_of_position(place, line, end)
            unlabelled += 1
            awaited = _beyond_count(label, line, match.end())
        is_after_size = re.fullmatch(SIZE_UNIT, unit) is not None


def _is_position(label: str) -> bool:
    """Return True for the step of "step 100 -> 4.2 GB": no earlier value."""
    return recognise(label).part is Part.AXIS


def _end_of_position(place: Place, line: str, end: int) -> int:
    """Where the words end that belong to a number: a position behind it names no other number, as
    in "after 3 runs - 47 MB".
    """
    if place.kind != "before" or not _is_position(place.text):
        return end
    return line.index(place.text, end) + len(place.text)


def _counts_before_size(between: str, label: str, unit: str) -> bool:
    """Return True for the "steps" of "2000 steps - 4.2 GB", which belong to the number before."""
    is_size = re.fullmatch(SIZE_UNIT, unit) is not None
    return is_size and between.startswith(f" {label}") and _is_of_training(label)


def _belongs_to_next(label: str, line: str, end: int) -> bool:
    before, word = label.rsplit(maxsplit=1)[-1].lower(), _word_after(line, end)
    is_done = before in _DONE and recognise(word).part is Part.AXIS
    return is_done or (before in PREPOSITIONS and word != "")


def _beyond_count(label: str, line: str, end: int) -> Place | None:
    """The place of the size in "RSS after 30 images: 47 MB", None in other lines."""
    word = _AFTER_BEFORE_SIZE.match(line, end)
    if word is None or recognise(label).part is not Part.METRIC:
        return None
    return Place("beyond", f"{label}{WHEN} {word[1]}")


def _word_after(line: str, end: int) -> str:
    """The word after a number, "" if it names the next one, as words before a colon do unless that
    is a size and they are not of memory.
    """
    if (word := _AFTER.match(line, end)) is not None:
        return word[1]
    word = _AFTER_BEFORE_SIZE.match(line, end)
    is_counted = word is not None and recognise(word[1]).part is not Part.METRIC
    return word[1] if word is not None and is_counted else ""


def _is_index(line: str, match: re.Match[str]) -> bool:
    """Return True for an index in a name: of a device, of one of several."""
    figure = match.group("figure")
    if match.group("unit") or not _WHOLE.fullmatch(figure) or len(figure) > 3:
        return False
    begin = max(0, match.start() - _NAME_OF_INDEX)  # a search from the line's start is quadratic
    named = _WHICH.search(line, begin, match.start())
    one = _OF_MANY.search(line, begin, match.start())
    ends = None if one is None else _OF_MANY_ENDS.match(line, match.end())
    if one is not None and ends is not None:
        part = recognise(one[1]).part
        return part is not Part.AXIS and (part is not Part.METRIC or ends[0] not in ")]")
    if named is not None and _WHICH_ENDS.match(line, match.end()) is not None:
        return recognise(named[1]).part is not Part.AXIS
    if _DEVICE.search(line, begin, match.start()) is None:
        return False
    ends = _DEVICE_ENDS.match(line, match.end("figure"))
    word = "" if ends is None else ends[1] or ""
    is_named = recognise(word).part is Part.METRIC or word.lower() in _QUALIFIERS | _USED
    return ends is not None and (not word or is_named)


def _when(
    between: str, label: str, line: str, match: re.Match[str], is_after_size: bool
) -> tuple[str, str] | None:
    """In "Memory after step 10: 512 MB" the word "step", and all before the value ("" if only a
    preposition precedes the word, or no value follows). None if the number is not a step.

    is_after_size: the number before is a size, as in "4.1 GB in use at step 10".
    """
    words = label.split()
    if len(words) < 2 or match.group("unit") or not _WHOLE.fullmatch(match.group("figure")):
        return None
    if recognise(words[-1]).part is not Part.AXIS or recognise(label).part is Part.AXIS:
        return None
    if words[-2].lower() in _RATES:
        return None
    every = _words(_CUT_OF_ALL, between)
    if all(word.lower() in PREPOSITIONS for word in every[:-1]):
        return words[-1], ""
    then = _THEN.match(line, match.end())
    if then is None:  # "INFO step=10", "heartbeat step=10"
        is_named = is_after_size or words[-2].lower() not in PREPOSITIONS
        is_named |= line[match.end() :].strip() == ":"  # "PetscMemoryView after step 50:"
        return (words[-1], "") if is_named and _is_of_training(words[-1]) else None
    return words[-1], " ".join(every[-WORDS_OF_ALL:]) + WHEN + (then["unit"] or "")


def _is_of_training(word: str) -> bool:
    return recognise(word).axis in _OF_TRAINING


def without_when(text: str) -> str:
    """The name of the value: `Memory (MB)` for "Memory at step 10 (MB): 512", `RSS` for "RSS after
    30 images: 47 MB".
    """
    before, _, behind = text.partition(WHEN)
    unit = behind if behind[:1] in {"(", "["} else ""  # else what was counted
    words = before.split()[:-1]
    while words and words[-1].lower() in PREPOSITIONS:
        words.pop()
    return " ".join([*words, unit.strip()]).strip()


def _is_no_reading(between: str, label: str, match: re.Match[str]) -> bool:
    """Return True for a part of a name ("NVIDIA A100-SXM4-80GB"), a line of code, a start, an
    increase, a single allocation, a total ("of 32 GB", "/ 32 GB"), a progress bar, an amount over
    time, or a size that comes again.
    """
    figure, unit = match.group("figure"), match.group("unit") or ""
    if unit == "%" and _BAR.match(match.string, match.end()):
        return True
    is_code = _FUNCTION.search(between) or _MODULE.search(between)
    if is_code and not unit and _FUNCTION_ENDS.match(match.string, match.end()):
        return True
    if _TOTALS.fullmatch(label.lower()) or _CODE.search(between) or _ALLOCATES.search(between):
        return True
    if re.fullmatch(SIZE_UNIT, unit):
        is_increase = figure.startswith("+")  # "memory +20 MB"
        return is_increase or between.strip() == "/" or _MODEL.search(between) is not None
    is_again = any(one.match(match.string, match.end()) for one in (_AGAIN, _OVER_TIME))
    return not unit and (is_again or not _BOUNDS.isdisjoint(label.lower().split()[-1:]))


def _unlabelled(
    match: re.Match[str], unit: str, label: str, *, first: bool, counter: str
) -> Place | None:
    """The place of a number without a name before it.

    counter: the name of the last `1/10` before it: `Epoch [1/10]: [91/938]`.
    """
    after = _AFTER.match(match.string, match.end())
    if not unit and _HAPPENED.match(match.string, match.end()):
        return None
    word = "" if unit else _word_after(match.string, match.end())
    if word and _names_number(word, bool(label)):
        return Place("before", word)
    if re.fullmatch(SIZE_UNIT, unit):
        counted = len(unit) == 1 and after and not _may_follow(after.group(1))
        is_rate = _PER.match(match.string, match.end())
        return None if counted or is_rate else _size(match)
    if match.group("total"):
        is_amount = recognise(counter).part is Part.METRIC  # "Memory: 1234/1234 1802/1802"
        return None if is_amount else Place("fraction", counter)
    if first and not match.string[: match.start()].strip(_STRIP):
        return None if _OF_TIME.match(match.string, match.end()) else Place("start", "")
    return None if unit else Place("plain", "")


def _size(match: re.Match[str]) -> Place:
    """The place of a size without a name before it."""
    line, end = match.string, match.end()
    if part := _part(line, match.start()):
        return Place("within", part)
    if "/" not in match.group() and (behind := _behind(line, end)):
        return Place("behind", behind)
    return Place("part" if OF_TOTAL.match(line, end) else "size", "")


def _part(line: str, end: int) -> str:
    """The words of memory or of a device that begin the part of the line between bars or
    semicolons: `RAM` in "loss 2.1 | RAM 38.1% (12.2/32.0 GB) | GPU 0: 41% util, 8.2/24.0 GB".
    """
    part = _PARTS.split(line[:end])[-1]
    words = _PART_WORDS.match(part)
    if words is None or len(part) == end:
        return ""
    meaning = recognise(words[1].rstrip("0123456789 "))
    return words[1] if meaning.part in {Part.METRIC, Part.LABEL} else ""


def _behind(line: str, end: int) -> str:
    """The words behind a size that name it: "14.3 GiB already allocated; 12.3 MiB free"."""
    words = _BEHIND.match(line, end)
    is_name = words is not None and recognise(words[1]).part is Part.METRIC
    return words[1] if words is not None and is_name else ""


def _may_follow(word: str) -> bool:
    """Return True if the word after "1.3G" does not show that it counts something else."""
    return recognise(word).part is Part.METRIC or word.lower() in {*PREPOSITIONS, "of", "used"}


def _names_number(word: str, after_preposition: bool) -> bool:
    """Return True if the word after a number names what it counts: `6529 tensors`, `3 run(s)`."""
    meaning = recognise(word)
    if meaning.part is Part.AXIS:
        return after_preposition
    return meaning.unit is Unit.COUNT


def _label(between: str, most: int) -> str:
    """The last words before a number, up to `most`; all of a key in quotes."""
    key = _KEY.search(between)
    if key is not None and any(c.isalpha() for c in key[1]):
        return key[1].strip()
    words = _words(_CUT, _TAG.sub("|", between))
    figures = [at for at, word in enumerate(words, 1) if _FIGURE.match(word)]
    words = words[max(figures, default=0) :]  # "trainer-0 990m 1234Mi"
    words = _in_open_bracket(words)
    if words and words[0].lower() in _NOW and recognise(" ".join(words[1:])).part is Part.METRIC:
        words = words[1:]
    is_named = between.rstrip().endswith((":", "=", " is"))
    kept = next((n for n, word in enumerate(words) if _is_kept(word, is_named)), len(words))
    most = max(most, min(len(words) - kept, WORDS_OF_ALL))
    most += words[-most:][0].isdigit() if words else 0  # "GPU 0 memory usage"
    if words and _OF_WHOLE.issuperset(word.lower() for word in words):
        words = [*_above_colon(between), *words]
        most = len(words)
    return " ".join(words[-most:]) if any(c.isalpha() for c in "".join(words)) else ""


def _above_colon(between: str) -> list[str]:
    """The words of memory before the last colon, with it: of "process memory:   total 1.3e+09"."""
    above, colon, _ = between.rstrip(_STRIP).rpartition(":")
    words = _words(_CUT, above)[-WORDS_OF_ALL:] if colon else []
    return [*words, ":"] if recognise(" ".join(words)).part is Part.METRIC else []


def _in_open_bracket(words: list[str]) -> list[str]:
    """The words, only those in a bracket if they alone are of memory: "9 rows sent (RSS 31 MB"."""
    at = next((n for n, word in enumerate(words) if n and word.startswith("(")), 0)
    inside = [words[at].lstrip("("), *words[at + 1 :]] if at else words
    if not at or recognise(" ".join(words)).part is Part.METRIC:
        return words
    return inside if recognise(" ".join(inside)).part is Part.METRIC else words


def _is_kept(word: str, is_named: bool) -> bool:
    """Return True for words that tell one reading of memory from another, and for memory itself if
    the whole phrase is a name: "CPU Memory before entering the train: 1210".
    """
    return word.lower() in _QUALIFIERS or (is_named and recognise(word).part is Part.METRIC)


def _words(cut: re.Pattern[str], between: str) -> list[str]:
    return (
        cut.split(between.rstrip(" \t:=#-([{'\"*`>~<.|@+"))[-1].lstrip("])").strip(_STRIP).split()
    )
