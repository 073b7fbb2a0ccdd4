"""Splits the name of a column into its words and its unit.

People write one thing in many ways: `rss_mb`, `RSS (MB)`, `rssMB`, `memory.used [MiB]`,
`Memory usage in MiB`. What they mean is looked up in `columns`; here a name only becomes words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memdiag.values import units

_BRACKETS = re.compile(r"[\[(]\s*(?:in\s+)?([^\W\d_]{1,8}|%)\s*[\])]")
# "memory per rank" is an amount.
HOLDER = "(?:rank|gpu|device|card|node|host|process|proc|worker|pod|container)"
_RATE = re.compile(
    r"/\s*(?:s|sec|second|min|h|it|iter|step)\b|(?:\b|_)[kmgt]?i?bps\b"
    rf"|(?:\bper\b|_per_)(?![\s_]*{HOLDER})",
    re.I,
)
_WORD = re.compile(
    r"[kKMGT]i?[Bb](?:ytes)?(?![A-Za-z])"  # a unit glued to the name: rssMB, usedMiB
    r"|[A-Z]+(?![a-zà-öø-ÿĀ-ž])[0-9]*"  # RSS, GPU in GPUMemory
    r"|[A-Z]?[a-zà-öø-ÿĀ-ž]+[0-9]*"  # heap, Used, mémoire, pamięć
    r"|[^\W_]+"  # digits, other scripts
    r"|%"
)
_PERCENT = {"%", "percent", "pct", "percentage"}
# Bare letters are units only inside brackets: `mem_g` may be anything, `mem (G)` may not.
_SIZE_WORD = re.compile(
    r"(?:[kmgtp]i?b|[кмгт]б|bytes?|[kmgtp]i?bytes?|(?:kilo|mega|giga|tera|kibi|mebi|gibi|tebi)bytes?)"
)
_TIME_WORD = {"s", "sec", "secs", "seconds", "second", "ms", "us", "h", "hours", "hour"}
_TIME_WORD |= {"min", "mins", "minute", "minutes", "d", "day", "days", "hr", "hrs", "msec"}
_TIME_ALIAS = {"secs": "s", "msec": "ms", "mins": "min", "hr": "h", "hrs": "h"}
_TIME_ALIAS |= {"sekunden": "s", "minuten": "min", "stunde": "h", "stunden": "h"}
_TIME_ALIAS |= {"millis": "ms", "milliseconds": "ms", "millisecond": "ms"}
# (`час` is an hour in Russian, Bulgarian and Serbian; in Ukrainian it is time.)
_TIME_ALIAS |= dict.fromkeys(("hora", "horas", "heure", "heures", "godzina", "godziny"), "h")
_TIME_ALIAS |= dict.fromkeys(("час", "часы", "часа", "часов", "ore", "timmar", "timer"), "h")
_TIME_ALIAS |= dict.fromkeys(
    ("minuto", "minutos", "minuti", "minuut", "minuter", "minutter"), "min"
)
_TIME_ALIAS |= dict.fromkeys(("minut", "minuta", "minuty", "минута", "минуты", "минут"), "min")
_TIME_ALIAS |= dict.fromkeys(("segundos", "secondi", "secondes", "sekund", "секунд"), "s")
_TIME_WORD |= _TIME_ALIAS.keys()
# `пам'ять`
_APOSTROPHE = re.compile("(?<=[а-яіїєґ])['’](?=[а-яіїєґ])")
# "kubernetes.io/container/memory/used_bytes"
_DOMAIN = re.compile(r"^[a-z0-9.-]+\.(?:com|io|net|org)/")
# "MEM USAGE / LIMIT": the cells begin with the amount in use.
_OF_LIMIT = re.compile(r"(?i)(?<=[a-z)\]])\s/\s(?:limit|total|max)$")
_GLUED = re.compile(r"(.*(?:rss|uss|pss|vms|mem|memory|vram|ram|heap|used|peak))([kmg]i?b|bytes)")

_STATE = "free|used|avail|available|total"
# `memfree`, `kbmemused`, `freeram`
_TWO_WORDS = re.compile(
    rf"(kb)?(mem|memory|ram|swap|heap)({_STATE})|({_STATE})(mem|memory|ram|swap|heap)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name in words.

    words: lower case, without the unit.
    bytes_per_unit: of a memory unit in the name; None where there is none.
    percent: the name says percent.
    seconds_per_unit: of a time unit in the name; None where there is none.
    rate: something per something, therefore no amount.
    """

    words: tuple[str, ...]
    bytes_per_unit: int | None = None
    percent: bool = False
    seconds_per_unit: float | None = None
    rate: bool = False


def take_apart(name: str) -> Name:
    """The words and the unit of a column's name."""
    name = _OF_LIMIT.sub("", _DOMAIN.sub("", name))
    bracketed = _BRACKETS.search(name)
    unit = bracketed.group(1).lower() if bracketed else ""
    rest = name[: bracketed.start()] + " " + name[bracketed.end() :] if bracketed else name
    rest = _APOSTROPHE.sub("", rest.replace("Δ", "delta "))
    words = [part for word in _WORD.findall(rest) for part in _unglue(word.lower())]
    factor = units.bytes_per_unit(unit) if unit else None
    percent = unit in _PERCENT
    if factor is None and not percent:
        factor, words = _take_size(words)
    if factor is None and _PERCENT & set(words):
        percent = True
        words = [word for word in words if word not in _PERCENT]
    seconds = None if factor or percent else _take_time(unit, words)
    if bracketed and factor is None and not percent and seconds is None:
        words += [word.lower() for word in _WORD.findall(bracketed.group(1))]
    return Name(
        words=tuple(words[:-1] if words[-1:] == ["in"] else words),
        bytes_per_unit=factor,
        percent=percent,
        seconds_per_unit=seconds,
        rate=_RATE.search(name) is not None,
    )


def _unglue(word: str) -> list[str]:
    glued = _GLUED.fullmatch(word) or _TWO_WORDS.fullmatch(word)
    return [part for part in glued.groups() if part] if glued else [word]


def _take_size(words: list[str]) -> tuple[int | None, list[str]]:
    for at in range(len(words) - 1, -1, -1):
        if _SIZE_WORD.fullmatch(words[at]):
            return units.bytes_per_unit(words[at]), words[:at] + words[at + 1 :]
    if len(words) > 1 and words[-1] == "b":
        return 1, words[:-1]
    return None, words


def _take_time(unit: str, words: list[str]) -> float | None:
    """Seconds per unit of time in brackets or in the last word, which is then taken away."""
    if unit in _TIME_WORD:
        return units.seconds_per_unit(_TIME_ALIAS.get(unit, unit))
    if words and words[-1] in _TIME_WORD:
        word = words.pop()
        return units.seconds_per_unit(_TIME_ALIAS.get(word, word))
    return None
