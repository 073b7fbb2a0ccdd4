"""What was in memory at the last census, and the places that grew in a run that memory ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from memdiag.report.text import numbers, series_names
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column, first_fitting, paragraph, paragraphs, table
from memdiag.values.findings import CensusFinding, GrownPlace, InMemory, RecordingFinding
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLACES, _GROUPS, _TYPES, _PROCESSES = 3, 6, 8, 2
_CODE_CELLS, _NAME_CELLS = 70, 160
_WHY = {
    "out_of_memory": "when an allocation failed, ",
    "critical": "when the critical threshold was crossed, ",
    "request": "",
    "regular": "",
}


def suspects(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The places that grew most, if the run was killed or has a census, and no cause is named."""
    return places(_suspects(found), screen)


def places(grown: Sequence[GrownPlace], screen: Screen) -> list[Text]:
    """The places that grew most."""
    if not grown:
        return []
    first, *more = (_grown(one, screen) for one in grown[:_PLACES])
    return paragraph(first, screen.measure, lead="Grew most:") + paragraphs(more, screen.measure)


def suspect_sentences(found: RecordingFinding, screen: Screen) -> Iterator[str]:
    """A sentence for each of the places that grew most."""
    for one in _suspects(found)[:_PLACES]:
        yield _grown(one, screen)


def _suspects(found: RecordingFinding) -> Sequence[GrownPlace]:
    """The places that may hold the growth, if no cause is named. A leak has not ended."""
    is_named = found.cause is not None and bool(found.cause.culprits)
    if is_named or not (is_killed(found) or found.census):
        return ()
    if found.verdict is Verdict.LEAK:
        return [one for one in found.grown if one.still_grows]
    return found.grown


def is_killed(found: RecordingFinding) -> bool:
    """Return True if memory or a signal ended the run."""
    how = found.ending
    return how is not None and (how.cause is not None or how.signal is not None)


def _grown(one: GrownPlace, screen: Screen) -> str:
    where = ""
    if one.file is not None:
        where = f"{screen.show(Path(one.file).name, cells=40)}:{one.line}"
        if one.code:
            where += f": {screen.show(one.code, cells=_CODE_CELLS)}"
        where += " - "
    is_other = one.process not in ("", "main")
    process = f" in {series_names.process(one.process, screen)}" if is_other else ""
    size = "" if one.unit == "bytes" else f" to {numbers.count(round(one.size))} {one.unit}"
    since = "" if one.since_step is None else f" since step {one.since_step:,}"
    ended = "" if one.still_grows else ", but not at the end"
    held = screen.show(one.holder, cells=_NAME_CELLS)
    grown = f"grew by {numbers.size(one.grown_bytes)}{size}{since}{ended}"
    return f"{where}{grown}{process}: {held}."


def lines(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The last censuses: their largest tensors and arrays, and their types."""
    said: list[Text] = []
    for one in found.census[:_PROCESSES]:
        said += [Text(), *of_process(one, screen)] if said else of_process(one, screen)
    more = len(found.census) - _PROCESSES
    if more > 0:
        text = f"{more} more process{'es' * (more > 1)} in the JSON document."
        said += paragraph(text, screen.measure)
    return said


def of_process(one: CensusFinding, screen: Screen) -> list[Text]:
    """One census."""
    said = paragraph(title(one, screen), screen.measure, lead="In memory")
    if one.groups:
        forms: tuple[dict[str, Any], ...] = ({}, {"cells": 24}, {"cells": 24, "has_shapes": False})
        said += first_fitting((_groups(one, screen, **form) for form in forms), screen.measure)
    if one.types:
        said += _types(one, screen)
    notes = (f"{screen.show(note[:1].upper() + note[1:])}." for note in one.notes)
    return said + paragraphs((*since(one), *notes), screen.measure)


def title(one: CensusFinding, screen: Screen) -> str:
    """What the census is of, and how many tensors there are."""
    is_other = one.process not in ("", "main")
    process = f"of {series_names.process(one.process, screen)} " if is_other else ""
    at = _moment(one.step, one.at_s)
    tensors = ""
    if one.tensors:
        size = numbers.size(one.tensor_bytes)
        tensors = f": {series_names.counted(one.tensors, 'tensor')} of {size}"
    reserved = "".join(
        f", {name.partition('_')[0].upper()} {name.split('_')[1]} {numbers.size(value)}"
        for name, value in one.allocators.items()
        if name.endswith(("_allocated_bytes", "_reserved_bytes"))
    )
    return f"{process}{_WHY[one.why]}{at}{tensors}{reserved}."


def rows(
    one: CensusFinding, screen: Screen, *, in_words: bool
) -> list[tuple[str, str, str, str, str]]:
    """Of the largest groups: size, growth, number, form, and holder: by its name, or in words."""
    return [
        (
            numbers.size(group.size_bytes),
            _growth(group.grown_bytes),
            f"{group.count:,}",
            form(group, screen),
            _holder(group, screen, in_words=in_words),
        )
        for group in one.groups[:_GROUPS]
    ]


def _holder(group: InMemory, screen: Screen, *, in_words: bool) -> str:
    if group.name:
        return screen.show(group.holder if in_words else group.name, cells=_NAME_CELLS)
    kind = f"{screen.show(group.inside, cells=24)} without a name" if group.inside else ""
    return kind or "graph or C++ code"


def form(group: InMemory, screen: Screen) -> str:
    """What it looks like: `float32 [256, 64] on cuda:0, with graph`."""
    what = screen.show(group.dtype or group.type, cells=24)
    shape = f" {list(group.shape)}" if group.dtype else ""
    device = "" if group.device == "cpu" else f" on {screen.show(group.device, cells=12)}"
    return f"{what}{shape}{device}{', with graph' if group.has_graph else ''}"


def _groups(
    one: CensusFinding, screen: Screen, *, cells: int = 44, has_shapes: bool = True
) -> list[Text]:
    found = rows(one, screen, in_words=False)
    columns = [Column("size", [Text(row[0]) for row in found], right=True)]
    if one.since_s is not None:
        columns.append(Column("growth", [Text(row[1]) for row in found], right=True))
    columns.append(Column("number", [Text(row[2]) for row in found], right=True))
    if has_shapes:
        columns.append(Column("tensors and arrays", [Text(row[3]) for row in found]))
    held = [Text(screen.show(row[4], cells=cells)) for row in found]
    return table([*columns, Column("held by", held)], gap=2)


def _types(one: CensusFinding, screen: Screen) -> list[Text]:
    # (Without a census before, all have grown by 0, and the largest are first.)
    shown = sorted(one.types, key=lambda kind: -(kind.grown_bytes or 0))[:_TYPES]
    columns = [Column("size", [Text(numbers.size(kind.size_bytes)) for kind in shown], right=True)]
    if one.since_s is not None:
        growth = [Text(_growth(kind.grown_bytes)) for kind in shown]
        columns.append(Column("growth", growth, right=True))
    counts = [Text(f"{kind.count:,}") for kind in shown]
    names = [Text(screen.show(kind.type, cells=44)) for kind in shown]
    columns += [Column("number", counts, right=True), Column("objects of type", names)]
    return table(columns, gap=2)


def _growth(grown_bytes: int | None) -> str:
    if grown_bytes is None:
        return ""
    return f"+{numbers.size(grown_bytes)}" if grown_bytes > 0 else numbers.size(grown_bytes)


def since(one: CensusFinding) -> Sequence[str]:
    """When the census before was taken, if there was one."""
    if one.since_s is None or (one.step is not None and one.since_step == one.step):
        return ()
    return (f"The growth is that since the census {_moment(one.since_step, one.since_s)}.",)


def _moment(step: int | None, at_s: float) -> str:
    return f"after {max(0.0, at_s):.0f} s" if step is None else f"at step {step:,}"
