"""Searches lines for the numbers of fields and for tags."""

from __future__ import annotations

from collections.abc import Sequence

from memdiag.recording.lazy_polars import pl
from memdiag.recording.textlog.discover_fields import Field
from memdiag.recording.textlog.number_spans import SIZE_UNIT
from memdiag.values import units

# "process 210.5 MB", "worker 300 MB": no numbers of processes. (polars has no look-ahead.)
_SIZE = rf"[0-9]+(?:\.[0-9]|(?:,[0-9]{{3}})*[ ]?(?:%|(?-i:{SIZE_UNIT})\b))"
# (`(incl. mmap)`: malloc_stats of glibc.)
_TOTAL = r"total(?: (?:memory|usage|gpus?|devices?)| \(incl\. mmap\))?"

# Patterns of tags, by name; the first match counts, unless its group is empty.
TAGS: dict[str, tuple[str, ...]] = {
    "phase": (
        r"(?i)\bphase(?: transition)?\b\W*(?:\w+\s*(?:->|→|=>)\s*)?([A-Za-z_][\w-]*)",
        r"(?i)\b(?:stage|mode|split)\s*[:=]\s*\W?([A-Za-z_][\w-]*)",
    ),
    "pid": (
        rf"(?i)\bpid\b[ :=#(]{{1,3}}(?:{_SIZE}|([0-9]{{2,10}})\b)",
        rf"(?i)\bprocess(?: id)?\b[ :=#(]{{1,3}}(?:{_SIZE}|([0-9]{{2,10}})\b)",
    ),
    "rank": (
        r"(?i)rank[ :=#\[]{0,3}([0-9]{1,6})\b",
        r"^\[[0-9]{1,6},([0-9]{1,6})\]<std(?:out|err)>",  # mpirun --tag-output
        r"^\[default([0-9]{1,6})\]:",  # torchrun --tee
    ),
    "worker": (rf"(?i)\b(?:worker|replica)[ :=#\[-]{{1,3}}(?:{_SIZE}|([0-9]{{1,6}})\b)",),
    "container": (
        r"(?i)\b(?:container|pod)(?:[-_ ]?id)?[ :=#]{1,3}([a-z]+[_-][\w-]*[0-9][\w-]*)",
        r"""(?i)\b(?:pod|container|host|hostname|node|instance|service)=["']?([a-z][\w.:-]*)""",
    ),
    "gpu": (r"(?i)(?:^|[\[(|])\s*(?:gpu|device|cuda)[ :#-]{0,2}([0-9]{1,3})\s*[\])|]",),
    # Alone in its line: of the lines below it.
    "device": (
        r"(?i)^\W*((?:gpu|device|cuda|card|arena|rank|worker|node)[ :#-]{0,2}[0-9]{1,3})\W*$",
        rf"(?i)^\W*({_TOTAL}):\s*$",
    ),
    "restart": (r"(?i)(?:^|\W)((?:restart|respawn)(?:ed|ing))(?:[^\w:=]|$)",),
}
HEADING = (
    r"(?i)^\W*(?:phase|stage|mode|split)\s*[:=]\s*\W?[A-Za-z_][\w-]*\W*$"
    r"|(?:^|\W)(?:restart|respawn)(?:ed|ing)(?:[^\w:=]|$)"
    rf"|^\W*{_TOTAL}:\s*$"
)
"""A line without numbers that is about those below it, such as `=== Phase: eval ===` or `Total:`,
or a restart.
"""

CARRIED = frozenset({"phase", "pid", "device"})
"""Tags that also apply to the lines below."""

_ANY_TAG = (
    "(?i)phase|stage|mode|split|pid|process|rank|worker|replica|container|pod|restart|respawn"
    "|host=|hostname=|node=|instance=|service="
    rf"|(?:gpu|device|cuda|card|arena|node)[ :#-]{{0,2}}[0-9]|<std|\[default|{_TOTAL}:\s*$"
)


def search(lines: pl.DataFrame, fields: Sequence[Field]) -> pl.DataFrame:
    """One row per line with a number; a column per field, and the tags where there are any."""
    line = pl.col("line")
    found = lines.select(  # in one go: polars then works on several columns at once
        "stamp",
        *(_tags() if lines["line"].str.contains(_ANY_TAG).any() else ()),
        *(
            (line.str.extract(f.quick, 1) if f.quick else line.str.extract_groups(f.pattern)).alias(
                f"field {n}"
            )
            for n, f in enumerate(fields)
        ),
    )
    values = [
        (_quick_values if field.quick else _values)(found[f"field {n}"], field, lines["line"])
        for n, field in enumerate(fields)
    ]
    for n, field in enumerate(fields):
        for other in field.others:  # as in `Field.find`
            own = pl.col("line").str.extract(field.pattern, 1)
            is_other = lines.select((own == pl.col("line").str.extract(other, 1)).fill_null(False))
            values[n] = values[n].set(is_other.to_series(), None)
    return found.with_columns(value.alias(f"field {n}") for n, value in enumerate(values))


def _tags() -> list[pl.Expr]:
    line = pl.col("line")
    return [
        pl.coalesce(line.str.extract(pattern, 1) for pattern in patterns).alias(name)
        for name, patterns in TAGS.items()
    ]


def _quick_values(numbers: pl.Series, field: Field, lines: pl.Series) -> pl.Series:
    """As `_values`, which searches the lines that the quick pattern does not match."""
    factor = float(units.bytes_per_unit(field.unit) or 1)
    values = _numbers(numbers) * factor
    missing = numbers.is_null()
    if missing.any():
        others = lines.filter(missing)
        rest = _values(others.str.extract_groups(field.pattern), field, others)
        if rest.null_count() < len(rest):
            values = values.scatter(missing.arg_true(), rest)
    return values


def _values(groups: pl.Series, field: Field, lines: pl.Series) -> pl.Series:
    """The values, in bytes if a unit of memory follows."""
    numbers, suffix = groups.struct.unnest().get_columns()
    values = _numbers(numbers)
    found = suffix.unique().drop_nulls().to_list()
    factors = {unit: units.bytes_per_unit(unit) for unit in found}
    known = {unit: float(factor) for unit, factor in factors.items() if factor is not None}
    if known:
        scale = suffix.replace_strict(
            list(known), list(known.values()), default=1.0, return_dtype=pl.Float64
        )
        values = values * scale.fill_null(1.0)
    if field.scaled:  # see `Field.find`
        values = values.set(suffix.is_null() & (values != 0), None)
    return values


def _numbers(texts: pl.Series) -> pl.Series:
    numbers: pl.Series = texts.cast(pl.Float64, strict=False)
    if numbers.null_count() > texts.null_count():
        numbers = texts.str.replace_all(",", "", literal=True).cast(pl.Float64, strict=False)
    return numbers
