"""What keeps the memory that leaks: the lines, the places, and what usually ends it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memdiag.report.text import numbers, series_names
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import joined, paragraph, paragraphs
from memdiag.values.findings import (
    Advice,
    Culprit,
    Evidence,
    EvidenceKind,
    Fix,
    RecordingFinding,
)
from memdiag.values.measurements import ON_DEVICE, Unit
from memdiag.values.memory_kind import MemoryKind

if TYPE_CHECKING:
    from rich.text import Text

_FIXES = {
    Fix.DETACH: "keep a number (loss.item()); a tensor whose values are needed, without its graph "
    "(.detach())",
    Fix.NO_GRAD: (
        "evaluate under torch.no_grad(), or keep numbers (.item()) and tensors without their graph "
        "(.detach())"
    ),
    Fix.COPY: (
        "keep a copy of the part that is needed (.copy() of an array, .clone() of a tensor): a "
        "slice keeps all that it is a part of"
    ),
    Fix.NO_TRACEBACK: (
        "keep str(error) or error.with_traceback(None): a traceback keeps the local variables of "
        "the functions in it"
    ),
    Fix.REMOVE_HOOK: "register the hook once, or keep its handle and call handle.remove()",
    Fix.REMOVE_HANDLER: "add the handler or callback once, or remove it when it is done",
    Fix.NEW_OPTIMIZER: (
        "an optimizer keeps each group of parameters and its state: create a new one for the "
        "parameters that are still trained, or delete the group and its state"
    ),
    Fix.CACHE_SIZE: "give the cache a maxsize, and do not cache methods by their self",
    Fix.FIXED_SHAPES: (
        "call it with few shapes (pad to a multiple), and pass what changes as an array: each "
        "shape and each value of a static argument is compiled anew; jax.clear_caches() frees all"
    ),
    Fix.CLOSE_FIGURE: "close each figure with plt.close(figure)",
    Fix.CONSUME: "take from the queue what is put into it, or give it a maxsize",
    Fix.BOUND_DICTIONARY: "delete entries that are no longer needed, or use a cache with a size",
    Fix.BOUND_SEQUENCE: (
        "keep sums or the last items only (deque(maxlen=...)), or clear it regularly"
    ),
    Fix.SMALLER_BOUND: "give it a smaller maxlen or maxsize if memory runs out before it is full",
    Fix.AGGREGATE: "write it out or aggregate it instead of making it larger",
    Fix.END_CALLS: (
        "let what the calls wait for end: a timeout, a sentinel in the queue, timer.cancel(), "
        "task.cancel()"
    ),
    Fix.BREAK_CYCLE: (
        "let Python's collector run (gc.enable(), or gc.collect() at each epoch), or break the "
        "cycle: a weak reference, ctx.save_for_backward(), or None once the object is done"
    ),
    Fix.RELEASE: (
        "free or close what this line gets: the library's free(), close() or release(), or a with "
        "block; if these are Python objects, look for reference cycles"
    ),
    Fix.UNLINK: (
        "do not refer from each object to the one before it; advance all iterators of a tee() at "
        "the same pace"
    ),
}
_CYCLES = (
    "no name in the program leads to most of what grows, and gc.collect() returns memory each "
    "time: objects in reference cycles hold it."
)
FIX = "Usual fix: "
LOADER_WORKER = re.compile(r"DataLoader worker")
POOL_WORKER = re.compile(r"\w*PoolWorker|\w*Process-\d")
# By the names of all processes with culprits: what ends workers, and with them what they keep.
_OF_WORKERS = (
    (
        LOADER_WORKER,
        "workers that end free it, at each epoch without persistent_workers=True",
    ),
    (
        POOL_WORKER,
        "workers that end free it (maxtasksperchild or max_tasks_per_child of a pool)",
    ),
)
_CODE_CELLS, _NAME_CELLS = 70, 160
# Up to this rate of objects per step, the report says how many steps keep one.
_RARE = 0.5


def lines(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The section; empty if nothing was looked for, or if the recording does not leak."""
    if found.cause is None or found.cause.share_explained is None:
        return []
    first, *more = sentences(found, screen)
    return paragraph(first, screen.measure, lead="Cause:") + paragraphs(more, screen.measure)


def sentences(
    found: RecordingFinding, screen: Screen, *, has_places: bool = False
) -> Iterator[str]:
    """What is known of the cause: a sentence or two for each place, the rest, and the fix.

    has_places: places that grew follow, although they are not known to hold the growth.
    """
    cause = found.cause
    explained = None if cause is None else cause.share_explained
    if cause is None or explained is None:
        return
    if not cause.culprits:
        is_cyclic = any(one.advice is Advice.CYCLES for one in cause.interventions)
        on_device = found.deciding is not None and found.deciding.role in ON_DEVICE
        yield _CYCLES if is_cyclic else _unknown(explained, has_places, on_device)
        for one in cause.unread:
            function, calls = screen.show(one.function, cells=40), screen.show(one.calls, cells=40)
            yield f"Local variables of {function}() are not read because it calls {calls}()."
        return
    # Places hold memory in use, which free memory that malloc keeps is not.
    is_fragmented = found.leaking is not None and found.leaking.kind is MemoryKind.HOLES
    growth = "the growth in use" if is_fragmented else "the growth"
    for culprit in cause.culprits:
        yield _place(culprit, growth, screen)
    rest = 1.0 - explained
    if rest >= 0.1:
        yield f"{numbers.share(rest)} of {growth} is not explained."
    yield from _counters(found, screen)
    if cause.fix is not None:
        yield f"{FIX}{_FIXES[cause.fix]}{_end_workers(cause.culprits)}."


def _counters(found: RecordingFinding, screen: Screen) -> Iterator[str]:
    """The counters of the program that rise with memory, if it is known how much for each count."""
    for one in found.evidence:
        if one.kind is EvidenceKind.COUNTER_GROWS and (each := per_count(one, found)):
            yield f"{counter_name(one, screen)} rises as well: {each}."


def counter_name(evidence: Evidence, screen: Screen) -> str:
    """A counter that rises with memory."""
    return series_names.reference(evidence.against or evidence.subject, screen)


def per_count(evidence: Evidence, found: RecordingFinding) -> str:
    """Bytes per count of a counter that rises with memory, "" if that is not known."""
    finding = found.deciding
    named = (
        one for one in found.series if f"{one.process} {one.metric}".strip() == evidence.against
    )
    counted = next(named, None)
    if finding is None or counted is None:
        return ""
    grown, counts = finding.growth_per_x, counted.growth_per_x
    is_alike = finding.unit is Unit.BYTES and finding.axis == counted.axis
    if grown is None or counts is None or not is_alike or min(grown.value, counts.value) <= 0:
        return ""
    return f"memory grows by {numbers.size(grown.value / counts.value)} per count"


def _end_workers(culprits: Sequence[Culprit]) -> str:
    """What also ends growth that is in workers alone."""
    processes = [name for one in culprits for name in one.processes or (one.process,)]
    for named, text in _OF_WORKERS:
        if all(map(named.match, processes)):
            return f"; {text}"
    return ""


def _unknown(explained: float, has_places: bool, on_device: bool) -> str:
    if has_places:
        known = f"only {numbers.share(explained)}" if explained > 0 else "none"
        return (
            f"not certain: the place below grew, but {known} of the growth is known to be there "
            "(what libraries and C code hold for it is not counted)."
        )
    part = ""
    if explained > 0:
        part = f" (those that grow hold {numbers.share(explained)} of it)"
    tool = "" if on_device else "try memray run --native, or "
    return (
        f"could not tell: no name was found that leads to most of what grows{part}. It may be held "
        f"by a library or by C code: {tool}tag the phases."
    )


def _place(culprit: Culprit, growth: str, screen: Screen) -> str:
    """The line, the figures, and what holds the memory, which may be long."""
    where = ""
    if culprit.file is not None:
        where = f"{screen.show(Path(culprit.file).name, cells=40)}:{culprit.line}"
        if culprit.function:
            where += f", in {screen.show(culprit.function, cells=40)}()"
        if culprit.code:
            where += f": {screen.show(culprit.code, cells=_CODE_CELLS)}"
        where += " - "
    held = screen.show(culprit.holder, cells=_NAME_CELLS)
    since = "" if culprit.since_step is None else f", since step {culprit.since_step:,}"
    share = f"{numbers.share(culprit.share)} of {growth}"
    if not culprit.is_certain:
        share = f"up to {share}, as nothing else explains it"
    return f"{where}{_rate(culprit)}{since} ({share}){_processes(culprit, screen)}: {held}."


def _processes(culprit: Culprit, screen: Screen) -> str:
    """The processes that it is in, "" for the main one."""
    first, *more = culprit.processes or (culprit.process,)
    if not more and first in ("", "main"):
        return ""
    name = series_names.process(first, screen)
    if len(more) > 1:
        return f" in {name} and {len(more)} more processes"
    return f" in {joined([name, *(series_names.process(one, screen) for one in more)])}"


def _rate(culprit: Culprit) -> str:
    if culprit.bytes_per_step is None:
        return f"{numbers.size(culprit.bytes_per_s)}/s"
    size, count = numbers.size(culprit.bytes_per_step), culprit.count_per_step
    if count is None:
        return f"{size} per step"
    if 0 < count <= _RARE:
        return f"{size} per step, 1 object every {1 / count:.3g} steps"
    plural = "" if f"{count:.3g}" == "1" else "s"
    return f"{size} ({count:.3g} object{plural}) per step"
