"""What came back when memory was freed, what it costs, and if it is worth it every N steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from memdiag.report.text import numbers, series_names
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column, paragraph, table
from memdiag.values.findings import Advice, InterventionFinding, RecordingFinding

# Every so many steps: what a table compares. People choose 1 to 100.
_EVERY = (1, 10, 100, 1000)
_MOST_PROCESSES = 2
_NAMES = {
    "gc_collect": "gc.collect()",
    "empty_cache": "torch.cuda.empty_cache()",
    "malloc_trim": "malloc_trim(0)",
}
_ADVICE = {
    Advice.USELESS: "not worth it: next to nothing came back, so what there is, is in use",
    Advice.ONCE: "not worth repeating: only the first call returned memory, that of the start",
    Advice.UNCLEAR: (
        "one call also returns what the start has left: run longer to see if it returns more"
    ),
    Advice.CYCLES: (
        "objects in reference cycles gather between calls: break the cycles (weakref, del), or "
        "call it every N steps as below"
    ),
    Advice.CACHE: (
        "torch's cache of free memory, which the next steps ask for again: worth it only if "
        "another process needs the memory"
    ),
    Advice.HOLES: (
        "free memory that malloc holds, which the program would use again: worth it only if the "
        "resident size nears a limit"
    ),
}
_NOT_REPEATED = frozenset({Advice.USELESS, Advice.ONCE, Advice.UNCLEAR})
# A part of the time that a regular call may take.
_WORTH = 0.01


def lines(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The section; empty without interventions."""
    said: list[Text] = []
    for process in processes(found):
        for one in process:
            said += paragraph(f"{sentence(one, screen)}", screen.measure, lead=f"{name(one)}:")
        rows = list(table_rows(process))
        if rows:
            said += _table(rows)
    return said


def processes(found: RecordingFinding) -> list[list[InterventionFinding]]:
    """The interventions of the first processes."""
    by_process: dict[str, list[InterventionFinding]] = {}
    for one in () if found.cause is None else found.cause.interventions:
        by_process.setdefault(one.process, []).append(one)
    return list(by_process.values())[:_MOST_PROCESSES]


def name(one: InterventionFinding) -> str:
    """What was called."""
    return _NAMES[one.action]


def sentence(one: InterventionFinding, screen: Screen) -> str:
    """What it returned and took, and the advice."""
    is_other = one.process not in ("", "main")
    process = f" in {series_names.process(one.process, screen)}" if is_other else ""
    count = series_names.counted(len(one.times), "call")
    took = numbers.duration(one.took_s)
    parts = [
        f"{numbers.size(size)}{where}"
        for size, where in ((one.returned_bytes, ""), (one.returned_device_bytes, " of the device"))
        if size is not None and (size or not where)
    ]
    returned = " and ".join(parts) or "an unknown amount"
    every = ""
    if one.advice is Advice.CYCLES and one.step_s:
        steps = max(1, round(one.took_s / (_WORTH * one.step_s)))
        every = f" Every {steps:,} steps it takes 1% of the time."
    return (
        f"{count}{process} returned {returned} each and took {took}: {_ADVICE[one.advice]}.{every}"
    )


def table_rows(found: Sequence[InterventionFinding]) -> Iterator[Sequence[str]]:
    """For each call that returns memory: its share of the time if it is made every so many steps,
    and the memory that gathers between two calls.
    """
    for one in found:
        if one.advice in _NOT_REPEATED or not one.step_s:
            continue
        times = [one.took_s / (one.took_s + steps * one.step_s) for steps in _EVERY]
        yield f"{name(one)}, time", *(f"{numbers.significant(100 * share, 2)}%" for share in times)
        if one.returned_per_step is not None:
            gathered = [numbers.size(one.returned_per_step * steps) for steps in _EVERY]
            yield "   memory between calls", *gathered


TITLES = ("if called every", *(f"{steps:,} step{'s' * (steps > 1)}" for steps in _EVERY))


def _table(rows: Sequence[Sequence[str]]) -> list[Text]:
    columns = [
        Column(title, [Text(row[at]) for row in rows], right=at > 0)
        for at, title in enumerate(TITLES)
    ]
    return table(columns)
