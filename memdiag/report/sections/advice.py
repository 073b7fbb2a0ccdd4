"""What to do next. Each piece of advice follows from a finding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memdiag.report.sections import cause, forecast, headline
from memdiag.report.text import argument_text, numbers, series_names
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import joined, paragraphs
from memdiag.values.findings import Evidence, EvidenceKind, Finding, RecordingFinding
from memdiag.values.measurements import Role, Unit
from memdiag.values.memory_kind import MemoryKind
from memdiag.values.verdict import Reason, Verdict

if TYPE_CHECKING:
    from rich.text import Text

_MOST = 3
SIZE = "Size for the plateau: "
# Of what memory has grown by, more than all other places together.
_MOST_GROWN = 0.5
# The peak of all processes is reported if it exceeds that of one by this factor.
_MORE = 1.1
_EVALUATION = re.compile(r"\b(eval|evaluate|evaluation|val|valid|validation|test|predict)\b", re.I)
_CHECKPOINT = re.compile(r"\b(checkpoint|ckpt|save|saving)\b", re.I)

_NO_SAMPLE = "Run it for longer, or sample more often: --interval 10ms."
_FAILED_AT_ONCE = "Look at what the command has printed: it failed at once."
_TENSORS_KEPT = (
    "Live tensors accumulate. Look for lists that collect them, such as losses.append(loss): "
    "keep numbers with loss.item(), or loss.detach() if a tensor is needed."
)
_NOT_TENSORS = (
    "Look outside Python tensors: native memory of extensions and data loading, other Python "
    "objects, and autograd graphs (tensors that only a graph holds are not counted)."
)
_OBJECTS_KEPT = (
    "Python objects accumulate. Look for lists, dictionaries and caches that are never emptied."
)
_HOLES = (
    "The program probably has nothing to free: the allocator keeps the memory. Try "
    "MALLOC_ARENA_MAX=2 or MALLOC_MMAP_THRESHOLD_=65536 in the environment, regular calls of "
    "malloc_trim(0), or another allocator such as jemalloc."
)
_KEPT_GRAPHS = (
    "Look for losses or outputs that are kept or summed with their autograd graph: use loss.item() "
    "or .detach() before keeping them. Also look for retain_graph=True and hooks."
)
_CYCLES = (
    "Python's garbage collector is switched off: call gc.enable(), or gc.collect() at each epoch. "
    "Or break the cycles: look for objects that refer to themselves, such as bound methods kept "
    "as callbacks."
)
_NATIVE = (
    "Look for arrays, strings and bytes that are kept, then for libraries and extensions that do "
    "not free what they allocate: memray run --native shows the lines."
)
_NATIVE_OR_TENSORS = f"Look for tensors that are kept in lists or caches. {_NATIVE}"
_MAPPED = (
    "Look for mappings that are never released: shared memory (share_memory_(), tensors from "
    "DataLoader workers that are kept), memory-mapped files, allocators of libraries."
)
_CACHED_BLOCKS = (
    "The program probably has nothing to free: the caching allocator keeps blocks that it cannot "
    "reuse. Pad inputs to few shapes, or try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; "
    "torch.cuda.empty_cache() between phases releases unused blocks."
)
_FRAGMENTED = (
    "The program has nothing to free: free memory is fragmented by blocks in use. Try "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, pad inputs to few shapes, and do not mix "
    "long-lived tensors with temporary ones. torch.cuda.empty_cache() does not help here."
)
_LARGER_TENSORS = (
    "Check the shapes over time: sequences, batches or caches that get longer. Pad or cut them to "
    "a fixed length."
)
_GRAPHS = (
    "No Python object refers to the new tensors: look for losses or outputs kept with their "
    "autograd graph (use loss.item() or .detach()), retain_graph=True, and hooks."
)
_WAITING = (
    "Look for tensors that other streams use (record_stream) and that are freed before those "
    "streams have caught up: synchronize the streams regularly."
)
_FULL = (
    "The device is full: reduce the batch size or other uses of its memory before an allocation "
    "fails for good."
)
_OUTSIDE_FRAMEWORK = (
    "Look outside the framework's allocator: library workspaces (cuDNN, NCCL), contexts of further "
    "processes, extensions and other libraries that allocate device memory themselves."
)
# The first entry whose kinds of evidence are all present.
_BY_EVIDENCE: tuple[tuple[set[EvidenceKind], str], ...] = (
    ({EvidenceKind.TENSORS_GROW}, _TENSORS_KEPT),
    ({EvidenceKind.OBJECTS_GROW}, _OBJECTS_KEPT),
    ({EvidenceKind.IN_USE_FLAT}, _HOLES),
    ({EvidenceKind.WAITING_GROWS}, _WAITING),
    ({EvidenceKind.ALLOCATIONS_FLAT}, _LARGER_TENSORS),
    ({EvidenceKind.ALLOCATIONS_GROW, EvidenceKind.TENSORS_FLAT}, _GRAPHS),
    ({EvidenceKind.ALLOCATIONS_GROW}, _TENSORS_KEPT),
    ({EvidenceKind.HOLES_GROW}, _FRAGMENTED),
    ({EvidenceKind.ALLOCATED_FLAT}, _CACHED_BLOCKS),
    ({EvidenceKind.RESERVED_FLAT}, _OUTSIDE_FRAMEWORK),
    ({EvidenceKind.TENSORS_FLAT}, _NOT_TENSORS),
)
_BY_KIND = {
    MemoryKind.TENSORS: _TENSORS_KEPT,
    MemoryKind.GRAPH: _KEPT_GRAPHS,
    MemoryKind.CYCLES: _CYCLES,
    MemoryKind.PYTHON_OBJECTS: _OBJECTS_KEPT,
    MemoryKind.NATIVE: _NATIVE,
    MemoryKind.NATIVE_OR_TENSORS: _NATIVE_OR_TENSORS,
    MemoryKind.HOLES: _HOLES,
    MemoryKind.MAPPED: _MAPPED,
}
_PROCESSES = (
    "Look for processes that are started repeatedly and never joined, such as the workers of a "
    "DataLoader that is created in each epoch."
)
_UNSHARED = (
    "To keep the parent's data shared, hold it in arrays (NumPy, PyArrow, a tensor) instead of "
    "lists and dictionaries of Python objects, or use fewer workers."
)
_LOADER_WORKERS = (
    "The growth is in the workers: look at what the data set, its transforms and collate_fn keep "
    "between samples, such as caches and lists. Each worker has its own until it ends, which is "
    "the end of the epoch without persistent_workers=True."
)
_POOL_WORKERS = (
    "The growth is in the workers: look at what the functions that they run keep between calls, "
    "such as module variables and caches. maxtasksperchild (multiprocessing) or "
    "max_tasks_per_child (concurrent.futures) replaces workers before they grow."
)
# By the names of all processes that grow.
_OF_WORKERS = (
    (cause.LOADER_WORKER, _LOADER_WORKERS),
    (cause.POOL_WORKER, _POOL_WORKERS),
)
_COUNTED = frozenset({EvidenceKind.COUNT_GROWS, EvidenceKind.PROCESSES_GROW})
_BY_COUNT = {
    Role.TENSORS: _TENSORS_KEPT,
    Role.OBJECTS: _OBJECTS_KEPT,
    Role.PROCESSES: _PROCESSES,
}
_TAGS = (
    'To see where it grows, tag the phases of the job (with memdiag.phase("eval"): ...) and '
    "record again."
)
_PRINTED_TAGS = (
    "To see where it grows, have it print the names of its phases, and record again with "
    "--phase-regex."
)
_FINER_TAGS = (
    "The tagged phases do not locate the growth, or ran too rarely. Tag smaller phases, or record "
    "a run twice as long."
)
_MORE_DATA = {
    Reason.TOO_FEW_SAMPLES: "Sample more often (--interval) if the run cannot be longer.",
    Reason.AT_LIMIT: "Raise the limit or lower the batch size and record again.",
    Reason.UNREAD_CELLS: "Write numbers in all cells of the column, or name it with --metric.",
    Reason.MAY_BE_FREE: "If it is free memory, say so with --metric NAME=free.",
    Reason.NOT_COLLECTED: "Record longer, or call the collector (gc.collect()) at each epoch.",
    Reason.NOT_MEMORY: "Record resident memory (RSS) or device memory as well.",
}


def lines(found: RecordingFinding, screen: Screen) -> list[Text]:
    """At most three paragraphs, the most important first."""
    return paragraphs(texts(found, screen), screen.measure, lead="Next:")


def texts(found: RecordingFinding, screen: Screen) -> list[str]:
    """At most three pieces of advice, the most important first."""
    finding = found.deciding
    if failed_at_once(found):
        return [_FAILED_AT_ONCE]
    if finding is None:
        remedy = "" if found.unmeasured is None else found.unmeasured.remedy
        return [f"{remedy[0].upper()}{screen.show(remedy[1:])}." if remedy else _NO_SAMPLE]
    return list(_advice(found, finding, screen))[:_MOST]


def failed_at_once(found: RecordingFinding) -> bool:
    """Return True if the target has failed before there were readings enough for a verdict."""
    how, finding = found.ending, found.deciding
    if how is None or how.why or headline.is_interrupted(how):
        return False
    failed = bool(how.code) or how.signal is not None
    return failed and (finding is None or finding.reason is Reason.TOO_FEW_SAMPLES)


def _peaks(found: RecordingFinding, finding: Finding) -> str:
    peak = f"the peak was {numbers.quantity(finding.peak_value, finding.unit)}"
    for other in found.series:
        together = other.process == "tree" and other.metric == finding.metric
        if together and other.peak_value > _MORE * finding.peak_value:
            peak += f", {numbers.quantity(other.peak_value, other.unit)} for all processes"
    return peak


def _advice(found: RecordingFinding, finding: Finding, screen: Screen) -> Iterator[str]:
    match found.verdict:
        case Verdict.LEAK if found.cause is not None and found.cause.culprits:
            yield from _workers(found)
            yield _compare(found, screen)
        case Verdict.LEAK:
            yield from _where(found, finding, screen)
            yield from _what(found, finding, screen)
            yield from _tags(found, finding)
        case Verdict.WARMUP:
            if any(e.kind is EvidenceKind.UNSHARED for e in found.evidence):
                yield _UNSHARED
                return
            accumulating = list(_accumulating(found))
            fix = "" if accumulating else "Nothing to fix. "
            yield f"{fix}{SIZE}{_peaks(found, finding)}."
            yield from accumulating
        case Verdict.STABLE:
            yield from _accumulating(found)
            grew = finding.reason is Reason.OVERRULED
            if grew and any(e.kind is EvidenceKind.IN_USE_FLAT for e in found.evidence):
                yield _HOLES
            if finding.peaks_grow:
                longer = forecast.longer(finding)
                yield f"Nothing to fix now. {longer}, to see how far the peaks rise."
        case Verdict.INCONCLUSIVE:
            if finding.reason is Reason.OVERRULED:
                yield from _what(found, finding, screen)
            yield from _inconclusive(found, finding, screen)


def _compare(found: RecordingFinding, screen: Screen) -> str:
    """How to see that a fix has helped."""
    is_kept = headline.place(found) != found.source
    sides = "last~1 last" if is_kept else f"{screen.show(found.source, cells=40)} AFTER.csv"
    return f"Fix it, record again, and check that the leak is gone: memdiag compare {sides}"


def _accumulating(found: RecordingFinding) -> Iterator[str]:
    """What grows in number while memory is stable."""
    counted = {e.against for e in found.evidence if e.kind in _COUNTED}
    roles = {f.role for f in found.series if f"{f.process} {f.metric}".strip() in counted}
    yield from (text for role, text in _BY_COUNT.items() if role in roles)


def _where(found: RecordingFinding, finding: Finding, screen: Screen) -> Iterator[str]:
    phases = [phase.phase for phase in finding.phases if phase.is_attributed]
    if phases:
        names = joined(screen.show(name, cells=30) for name in phases[:4])
        yield f"Check what each {names} keeps referenced when it ends.{_common_cause(phases)}"
    elif finding.recurring is not None:
        names = joined(screen.show(name, cells=30) for name in finding.recurring.phases[:4])
        yield (
            f"Check what {names} keep referenced: they add equal amounts, so they probably share "
            "one cause."
        )
    alone = next((e for e in found.evidence if e.kind is EvidenceKind.ONE_PROCESS), None)
    if alone is not None and finding.process not in {"", "tree"}:
        name = series_names.process(finding.process, screen)
        yield f"Check what {name} does that the other processes do not."
    yield from _workers(found)


def _workers(found: RecordingFinding) -> list[str]:
    """Advice for workers, if nothing else grows."""
    names = [] if found.growth is None else [part.process for part in found.growth.parts]
    return [text for named, text in _OF_WORKERS if names and all(map(named.match, names))]


def _tags(found: RecordingFinding, finding: Finding) -> Iterator[str]:
    """How to see where it grows, if that is not known. Workers have no phases."""
    is_known = finding.recurring is not None or any(p.is_attributed for p in finding.phases)
    if not is_known and not _workers(found):
        has_probe = all(one.metric != "probe_readings" for one in found.missing)
        yield _FINER_TAGS if finding.phases else _TAGS if has_probe else _PRINTED_TAGS


def _common_cause(phases: list[str]) -> str:
    if all(_EVALUATION.search(name) for name in phases):
        return (
            " Common causes: predictions or losses collected in a list, or a forward pass without "
            "torch.no_grad()."
        )
    if all(_CHECKPOINT.search(name) for name in phases):
        return " A common cause is a state_dict that is copied for the checkpoint and kept."
    return ""


def _what(found: RecordingFinding, finding: Finding, screen: Screen) -> Iterator[str]:
    """Advice for the kind of memory that grows."""
    kinds = {evidence.kind: evidence for evidence in found.evidence}
    if EvidenceKind.PROCESSES_GROW in kinds:
        yield _PROCESSES
    if finding.role is Role.TENSORS:
        yield _TENSORS_KEPT
    elif found.leaking is not None and found.leaking.kind in _BY_KIND:
        yield _BY_KIND[_without_tensors(found, found.leaking.kind)]
    else:
        yield from [text for needed, text in _BY_EVIDENCE if needed <= kinds.keys()][:1]
    if EvidenceKind.RETRIES_RISE in kinds or EvidenceKind.OOMS_RISE in kinds:
        yield _FULL
    if EvidenceKind.COUNTER_GROWS in kinds:
        yield _counter(kinds[EvidenceKind.COUNTER_GROWS], found, screen)


def _without_tensors(found: RecordingFinding, kind: MemoryKind) -> MemoryKind:
    """The kind, native memory alone where no framework that has tensors was used."""
    known = {one.metric for one in found.series} | {one.metric for one in found.missing}
    has_none = kind is MemoryKind.NATIVE_OR_TENSORS and "tensors" not in known
    return MemoryKind.NATIVE if has_none else kind


def _counter(evidence: Evidence, found: RecordingFinding, screen: Screen) -> str:
    each = cause.per_count(evidence, found)
    name = cause.counter_name(evidence, screen)
    return f"Find what increases {name} and never decreases it{f': {each}' if each else ''}."


def _holding_most(found: RecordingFinding, finding: Finding, screen: Screen) -> str:
    """What to do about the place that holds most of what has grown, "" if none does."""
    grown = finding.latest_value - finding.start_value
    if finding.unit is not Unit.BYTES or not found.grown or not grown > 0:
        return ""
    largest = max(found.grown, key=lambda one: one.grown_bytes)
    part = largest.grown_bytes / grown
    if part < _MOST_GROWN:
        return ""
    return (
        f"Look at what adds to {screen.show(largest.holder, cells=160)} first: it holds "
        f"{numbers.share(min(1.0, part))} of what memory has grown by."
    )


def _inconclusive(found: RecordingFinding, finding: Finding, screen: Screen) -> Iterator[str]:
    how = found.ending
    if finding.need_more is not None and how is not None and how.cause is not None:
        yield _holding_most(found, finding, screen) or forecast.more_memory(
            finding, finding.need_more, how.limit_bytes
        )
        return
    if finding.need_more is not None:
        yield forecast.needs(finding, finding.need_more, screen)
    by = argument_text.decisive(finding)
    waits = finding.reason is Reason.TOO_FEW_SAMPLES and by is not None and by.need_x is not None
    if finding.reason in _MORE_DATA and not waits:  # (more readings of so short a time do not help)
        yield _MORE_DATA[finding.reason]
    elif finding.need_more is None:
        yield f"{forecast.longer(finding)}."
