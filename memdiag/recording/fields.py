"""What the numbers in a log's lines are: found on some lines, said as patterns for all.

A number is named by the words before it (`rss 823 MB`, `Peak mem 100.759 GB`, `memory: 6814`), or
by the word after it (`6529 tensors`), or by its place and unit alone (`Step 80: 17,412 MB`).
The patterns are made for polars, whose matching takes linear time on any line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memdiag.model import Unit
from memdiag.recording.columns import Meaning, Part, recognise

_FRACTION = r"(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
NUMBER = rf"[-+]?(?:[0-9]{{1,3}}(?:,[0-9]{{3}})+|[0-9]+){_FRACTION}"
_SIZE_UNIT = r"(?:[kKMGT]i?B|[KMGTkmgt]i?b|[KMG]i?|[Bb]ytes?|B)"
_UNIT = rf"(?:{_SIZE_UNIT}|%|secs?|s|ms|min|hours?|h)"
# Used of all, with the unit behind both: `2571/15817MB`, `2571 / 15817 MB`.
_OF = r"[ ]?/[ ]?[0-9][0-9.]*"
_SCAN = re.compile(
    rf"(?<![\w.])(?P<figure>{NUMBER})(?P<total>/[0-9]+)?(?:{_OF}(?=[ ]?{_SIZE_UNIT}\b))?"
    rf"[ ]?(?P<unit>{_UNIT})?(?![A-Za-z0-9_])"
)
_AFTER = re.compile(r"\s*([A-Za-z_]+)(?:\(s\))?(?!\s*[=:]|\w)")
# "after 3 run(s)", "at step 5": the number belongs to the word that follows.
_PREPOSITIONS = frozenset({"after", "at", "for", "in", "on", "during", "before"})
_CUT = re.compile(
    r"[,|;\t{}]|\s{2,}|:\s+(?=\S)|\s-+\s|\s?->\s?|[\])]\s+(?=[A-Za-z])|(?<=\w)\((?=[A-Za-z]{2})(?![A-Za-z]{1,5}\))"
)
# "Phase: train Step 10": the step is no "train Step", which "eval Step" would be another of.
_TAG = re.compile(r"\b(?:phase|stage|mode|split)\s*[:=]\s*\W?[A-Za-z_][\w-]*(?=\s)", re.I)
_ZEROS = str.maketrans("123456789", "000000000")
# The key of a dictionary, as Python or JSON prints it: `'memory/max_mem_active(gib)': `.
_KEY = re.compile(r"""['"]([^'"]{1,60})['"]\s*[:=]\s*$""")
_MODEL = re.compile(r"\w-$")
_TOTALS = frozenset({"of", "out of"})
_STRIP = " \t:=#-–([{'\"*`>~<.|_@+"
_WORDS_KEPT = 3
# A field must be in so many of the lines that hold the most frequent one of its kind.
_SHARE = 0.05
_SEEN_AT_LEAST = 3

# The name of a number that stands alone at the start of lines.
LEADING = "index"

_HEADING_ENDS = re.compile("[:|=0-9]")
# In these headings figures without a unit of their own are bytes.
_BYTES_HEADINGS = re.compile(r"\bp(?:full)?mem(?:ory_info)?\(|\bsvmem\(", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A number that comes again in many lines.

    name: what it is called, with its unit.
    scaled: the unit stands behind the figures, which are turned into bytes where they are read.
    pattern: for `str.extract_groups`: group 1 is the figure, group 2 its unit, which may be null.
    quick: for `str.extract`: figures that have the one unit `unit`, as all that were seen; twice as
        fast. "" where units differ, or where it could match another figure of the line.
    alike: where digits belong to the name, as in "gpu0 mem", finds names with any others as well.
    """

    name: str
    meaning: Meaning
    pattern: str
    scaled: bool = False
    quick: str = ""
    unit: str = ""
    alike: str = ""

    def find(self, line: str) -> tuple[tuple[int, int], str] | None:
        """Where its figure stands in a line, and the unit of that; None where there is none."""
        if self.quick and (found := re.search(self.quick, line)):
            return found.span(1), self.unit
        found = re.search(self.pattern, line)
        return None if found is None else (found.span(1), found.group(2) or "")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a number stands: after a label, before a word, at the start, or by its unit."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class _Number:
    place: _Place
    unit: str


def find_fields(lines: Sequence[str], of_so_many: str = "iteration") -> list[Field]:
    """The fields of these lines that are an axis or a metric, metrics first.

    of_so_many: what `7/100` counts.
    """
    seen: Counter[_Place] = Counter()
    units: dict[_Place, Counter[str]] = {}
    known: dict[str, tuple[_Number, ...]] = {}
    repeated: set[_Place] = set()
    for line in lines:
        for number in _numbers_once(line, known, repeated):
            seen[number.place] += 1
            units.setdefault(number.place, Counter())[number.unit] += 1
    heading = _heading(lines)
    labels = [place.text for place in seen if place.kind == "label"]
    fields = []
    for place, _ in seen.most_common():
        if place.kind == "plain":
            continue
        unit = units[place].most_common(1)[0][0]
        name = of_so_many if place.kind == "fraction" else _name(place, unit, heading)
        meaning = recognise(name)
        if meaning.part in {Part.METRIC, Part.AXIS}:
            # (Of two figures of one name the quick pattern may not find the first.)
            quick = place.kind == "label" and len(units[place]) == 1 and place not in repeated
            quick = quick and (bool(unit) or meaning.part is Part.AXIS)
            field = Field(
                name=name,
                meaning=meaning,
                pattern=_pattern(place, labels),
                scaled=bool(unit),
                quick=_pattern(place, labels, _quick_figure(unit)) if quick else "",
                unit=unit,
                alike=_pattern(place, labels, digits="[0-9]") if _has_digits(place) else "",
            )
            fields.append((seen[place], field))
    metrics = _frequent((n, f) for n, f in fields if f.meaning.part is Part.METRIC)
    if not metrics and (plain := _plain_figure(seen, len(lines))) is not None:
        metrics = [plain]
    axes = _frequent((n, f) for n, f in fields if f.meaning.part is Part.AXIS)
    return metrics + axes if metrics else []


def _numbers_once(
    line: str, known: dict[str, tuple[_Number, ...]], repeated: set[_Place]
) -> Iterable[_Number]:
    """The line's numbers, one of each place. Those of lines that differ in digits are the same,
    but for digits in names. Places with several numbers in the line are added to `repeated`.
    """
    form = line.translate(_ZEROS)
    if form in known:
        return known[form]
    found = tuple(_numbers(line))
    often = Counter(number.place for number in found)
    repeated.update(place for place, count in often.items() if count > 1)
    numbers = tuple({number.place: number for number in found}.values())
    if not any(_has_digits(number.place) for number in numbers):
        known[form] = numbers
    return numbers


def _numbers(line: str) -> Iterable[_Number]:
    end, unlabelled, bare = 0, 0, False
    for match in _SCAN.finditer(line):
        between = line[end : match.start()]
        end = match.end()
        unit = match.group("unit") or ""
        label = _label(between)
        if _is_no_reading(between, label, unit):
            continue
        after = _AFTER.match(line, end)
        if label and not (after and label.split()[-1] in _PREPOSITIONS):
            yield _Number(_Place("label", label), unit)
            continue
        if match.group("figure").startswith("+"):
            continue  # "(+1,853 MB)": what was added, no reading
        if not unit and after and _names_number(after.group(1), bool(label)):
            yield _Number(_Place("before", after.group(1)), "")
        elif place := _place_alone(match, unit, first=unlabelled == 0):
            if place.kind != "size" or not bare:
                yield _Number(place, unit)
            bare = bare or place.kind == "size"
        unlabelled += 1


def _is_no_reading(between: str, label: str, unit: str) -> bool:
    """What something is called ("NVIDIA A100-SXM4-80GB"), or how much there is ("of 32 GB")."""
    called = _MODEL.search(between) is not None and re.fullmatch(_SIZE_UNIT, unit) is not None
    return called or label.lower() in _TOTALS


def _place_alone(match: re.Match[str], unit: str, *, first: bool) -> _Place | None:
    """Where a number stands that no word names."""
    if re.fullmatch(_SIZE_UNIT, unit):
        return _Place("size", "")
    if match.group("total"):
        return _Place("fraction", "")
    if first and not match.string[: match.start()].strip(_STRIP):
        return _Place("start", "")
    return None if unit else _Place("plain", "")


def _names_number(word: str, after_preposition: bool) -> bool:
    """The word behind a number says what is counted: `6529 tensors`, `after 3 run(s)`."""
    meaning = recognise(word)
    if meaning.part is Part.AXIS:
        return after_preposition
    return meaning.unit is Unit.COUNT


def _label(between: str) -> str:
    """The last words before a number, up to three; all of a key in quotes."""
    key = _KEY.search(between)
    if key is not None and any(c.isalpha() for c in key[1]):
        return key[1].strip()
    part = _CUT.split(_TAG.sub("|", between).rstrip(" \t:=#-([{'\"*`>~<.|@+"))[-1]
    words = part.strip(_STRIP).split()
    return " ".join(words[-_WORDS_KEPT:]) if any(c.isalpha() for c in part) else ""


def _heading(lines: Sequence[str]) -> str:
    """What most lines begin with, before the first colon or number."""
    starts = Counter(_HEADING_ENDS.split(line, maxsplit=1)[0].strip() for line in lines)
    return starts.most_common(1)[0][0] if starts else ""


def _name(place: _Place, unit: str, heading: str) -> str:
    """A name that `columns` understands."""
    if place.kind == "size":
        return f"memory ({unit})"
    if place.kind == "start":
        return {"s": "time (s)", "ms": "time (ms)", "h": "time (h)"}.get(unit, LEADING)
    label, around = place.text, _about(heading)
    known = recognise(label)
    if known.part is Part.OTHER and not unit and _is_qualifier(label):
        label = f"{around} {label}"
    stem = re.sub(r"\(s\)|\(?in \w+\)?", "", label)
    if known.unit is Unit.BYTES and recognise(stem).part is Part.AXIS:
        label = f"{around} {label.removeprefix(stem.strip())}"  # Memory usage after 3 runs (in MiB)
    if known.part is Part.AXIS or known.unit is not None:
        return label
    unit = unit or ("%" if "percent" in label.lower() else _unit_of_heading(heading))
    return f"{label} ({unit})" if unit else label


def _about(heading: str) -> str:
    words = re.sub(r"\(\w*$", "", heading).split()  # "svmem(total=5, used=3)"
    return " ".join(word for word in words if word.lower() not in _PREPOSITIONS)


def _unit_of_heading(heading: str) -> str:
    """`Mem memory (MB) | allocated: 20.4`, `pfullmem(rss=415825920, ...)`."""
    in_brackets = re.search(r"\(([KMGT]i?B)\)", heading)
    if in_brackets:
        return in_brackets.group(1)
    return "bytes" if _BYTES_HEADINGS.search(heading) else ""


def _is_qualifier(label: str) -> bool:
    """`current`, `peak`: of the memory that the line's heading speaks of."""
    words = set(label.lower().split())
    return words <= {"current", "peak", "max", "now", "used", "usage", "total", "cur", "is", "at"}


_ANY_FIGURE = rf"({NUMBER})(?:(?:{_OF})?[ ]?({_UNIT}))?"


def _quick_figure(unit: str) -> str:
    """With a unit behind it, a figure needs no thousands: those that have some are no match then,
    and are searched again.
    """
    figure = rf"[-+]?[0-9]+{_FRACTION}" if unit else NUMBER
    return f"({figure})[ ]?{unit}"


def _has_digits(place: _Place) -> bool:
    return re.search("[0-9]", place.text) is not None


def _pattern(
    place: _Place, labels: Sequence[str], figure: str = _ANY_FIGURE, digits: str = ""
) -> str:
    """digits: a pattern to stand for each digit of the name, "" for the digit itself."""
    if place.kind == "label":
        tokens = re.findall(r"\w+|[^\w\s]", place.text)
        label = r"\s*".join(re.escape(token) for token in tokens)
        label = re.sub("[0-9]", digits, label) if digits else label
        shadowed = any(other != place.text and other.endswith(place.text) for other in labels)
        before = r"(?:^|[^\w\s]|[0-9]\w*|\s\s)\s*" if shadowed else r"(?:^|\W)"
        return rf"{before}{label}-?[^0-9A-Za-z+\-.]{{0,24}}{figure}(?:[^0-9A-Za-z_]|$)"
    if place.kind == "before":
        return rf"(?:^|[^\w.]){figure}\s*{re.escape(place.text)}\b"
    if place.kind == "fraction":
        return r"(?:^|[^\w.])([0-9]+)()/[0-9]+(?:\D|$)"
    if place.kind == "size":
        return rf"(?:^|[^\w.+\-])({NUMBER})(?:{_OF})?[ ]?({_SIZE_UNIT})(?:[^0-9A-Za-z_]|$)"
    if place.kind == "start":
        return rf"^[^\w]{{0,12}}{figure}(?:[^0-9A-Za-z_]|$)"
    return rf"[:=\s]\s*({NUMBER})()\s*$"


def _frequent(fields: Iterable[tuple[int, Field]]) -> list[Field]:
    """Those that are no chance find; each name once."""
    counted = list(fields)
    most = max((n for n, _ in counted), default=0)
    kept = {f.name: f for n, f in reversed(counted) if n >= max(_SEEN_AT_LEAST, _SHARE * most)}
    return list(kept.values())[::-1]


def _plain_figure(seen: Counter[_Place], lines: int) -> Field | None:
    """The one figure of lines such as `i=300: 183.84`, whose unit nobody knows."""
    plain = seen[_Place("plain", "")]
    others = [p for p in seen if p.kind == "label" and recognise(p.text).part is not Part.AXIS]
    if plain < 0.8 * lines or any(seen[p] > 0.2 * lines for p in others):
        return None
    place = _Place("plain", "")
    return Field(name="memory", meaning=recognise("memory"), pattern=_pattern(place, ()))
