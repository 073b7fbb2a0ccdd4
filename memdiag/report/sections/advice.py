"""What to do next. Each piece of advice follows from a finding, and says no more than it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memdiag.report.sections import forecast
from memdiag.report.text import numbers, series_names
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import joined, paragraph
from memdiag.values.findings import Evidence, EvidenceKind, Finding, MemoryKind, RecordingFinding
from memdiag.values.measurements import Role
from memdiag.values.verdict import Reason, Verdict

if TYPE_CHECKING:
    from rich.text import Text

_MOST = 3
_MORE = 1.1  # times a process's peak from which that of all of them is worth telling
_EVALUATION = re.compile(r"\b(eval|evaluate|evaluation|val|valid|validation|test|predict)\b", re.I)
_CHECKPOINT = re.compile(r"\b(checkpoint|ckpt|save|saving)\b", re.I)
_ON_DEVICE = frozenset({Role.DEVICE, Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED})

_NO_SAMPLE = (
    "If the command ended before its first sample, run it for longer or sample more often "
    "(--interval)."
)
_TENSORS_KEPT = (
    "Live tensors accumulate. Look for lists that collect them, such as losses.append(loss): "
    "keep numbers with loss.item(), or loss.detach() where a tensor is needed."
)
_NOT_TENSORS = (
    "Look outside Python tensors: native memory of extensions and data loading, Python objects "
    "that are no tensors, and autograd graphs (tensors held by a graph alone are not counted)."
)
_OBJECTS_KEPT = (
    "Python objects accumulate. Look for lists, dictionaries and caches that are filled and never "
    "emptied."
)
_HOLES = (
    "Probably nothing to free in the program: the allocator keeps the memory. Try "
    "MALLOC_ARENA_MAX=2 or MALLOC_MMAP_THRESHOLD_=65536 in the environment, malloc_trim(0) now and "
    "then, or another allocator such as jemalloc."
)
_KEPT_GRAPHS = (
    "Look for losses or outputs that are kept or summed up with their autograd graph: take "
    "loss.item() or .detach() before keeping them. Then for retain_graph=True, and hooks."
)
_NATIVE = (
    "Look for arrays, strings and bytes that are kept, then for libraries and extensions that do "
    "not free what they allocate: memray run --native names the lines."
)
_MAPPED = (
    "Look for what is mapped and not let go of: shared memory (share_memory_(), tensors from "
    "DataLoader workers that are kept), memory-mapped files, allocators of libraries."
)
_CACHED_BLOCKS = (
    "Probably nothing to free in the program: the caching allocator keeps blocks it cannot "
    "reuse. Pad inputs to few shapes, or try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; "
    "torch.cuda.empty_cache() between phases gives unused blocks back."
)
_FRAGMENTED = (
    "Nothing to free in the program: the free memory lies in pieces between blocks in use. Try "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, pad inputs to few shapes, and do not mix "
    "tensors that live long with temporary ones. torch.cuda.empty_cache() does not help here."
)
_LARGER_TENSORS = (
    "Look at the shapes over time: sequences, batches or caches that get longer. Pad or cut "
    "them to a bound."
)
_GRAPHS = (
    "No Python object holds the new tensors: look for losses or outputs kept with their autograd "
    "graph (loss.item() or .detach() before keeping), retain_graph=True, and hooks."
)
_WAITING = (
    "Look for tensors that other streams use (record_stream) and that are freed before those have "
    "caught up: synchronise the streams now and then."
)
_FULL = (
    "The device is full: lower the batch size, or free its memory for other uses, before an "
    "allocation fails for good."
)
_OUTSIDE_FRAMEWORK = (
    "Look outside the framework's allocator: library workspaces (cuDNN, NCCL), contexts of further "
    "processes, extensions and other libraries that allocate device memory themselves."
)
# The first that fits, of all that the evidence says together.
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
    MemoryKind.PYTHON_OBJECTS: _OBJECTS_KEPT,
    MemoryKind.NATIVE: _NATIVE,
    MemoryKind.HOLES: _HOLES,
    MemoryKind.MAPPED: _MAPPED,
}
_PROCESSES = (
    "Look for processes that are started again and again and not joined, such as DataLoader "
    "workers of a loader made anew in each epoch."
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
_FINER_TAGS = (
    "The tagged phases do not tell where it grows, or ran too seldom to tell. Tag finer ones, or "
    "record a longer run."
)
_TELL_MORE = {
    Reason.TOO_FEW_SAMPLES: "Sample more often (--interval) if the run cannot be longer.",
    Reason.AT_LIMIT: "Raise the limit or lower the batch size and record again.",
    Reason.NOT_COLLECTED: "Record longer, or call the collector (gc.collect()) at each epoch.",
    Reason.NOT_MEMORY: "Record resident memory (RSS) or device memory as well.",
}


def lines(found: RecordingFinding, screen: Screen) -> list[Text]:
    """At most three paragraphs, the most telling first."""
    finding = found.deciding
    texts = [_NO_SAMPLE] if finding is None else list(_advice(found, finding, screen))
    paragraphs: list[Text] = []
    for at, text in enumerate(texts[:_MOST]):
        lead = "Next:" if at == 0 else "Then:"
        paragraphs += paragraph(text, screen.measure, lead=lead, hanging=len("Next: "))
    return paragraphs


def _peaks(found: RecordingFinding, finding: Finding) -> str:
    peak = f"it needed {numbers.quantity(finding.peak_value, finding.unit)} at its peak"
    for other in found.series:
        together = other.process == "tree" and other.metric == finding.metric
        if together and other.peak_value > _MORE * finding.peak_value:
            peak += f", all processes {numbers.quantity(other.peak_value, other.unit)} together"
    return peak


def _advice(found: RecordingFinding, finding: Finding, screen: Screen) -> Iterator[str]:
    match found.verdict:
        case Verdict.LEAK:
            yield from _where(found, finding, screen)
            yield from _what(found, finding, screen)
            told = finding.recurring is not None or any(p.is_attributed for p in finding.phases)
            if not told:
                yield _FINER_TAGS if finding.phases else _TAGS
        case Verdict.WARMUP:
            accumulating = list(_accumulating(found))
            fix = "" if accumulating else "Nothing to fix. "
            yield f"{fix}Plan for the plateau: {_peaks(found, finding)}."
            yield from accumulating
        case Verdict.STABLE:
            yield from _accumulating(found)
            if any(e.kind is EvidenceKind.IN_USE_FLAT for e in found.evidence):
                yield _HOLES
            if finding.peaks_grow:
                yield "Nothing to fix now. Record a longer run to see how far the peaks go."
        case Verdict.INCONCLUSIVE:
            if finding.reason is Reason.OVERRULED:
                yield from _what(found, finding, screen)
            yield from _doubt(found, finding, screen)


def _accumulating(found: RecordingFinding) -> Iterator[str]:
    """What grows in number beside memory that is calm."""
    counted = {e.against for e in found.evidence if e.kind in _COUNTED}
    roles = {f.role for f in found.series if f"{f.process} {f.metric}".strip() in counted}
    yield from (text for role, text in _BY_COUNT.items() if role in roles)


def _where(found: RecordingFinding, finding: Finding, screen: Screen) -> Iterator[str]:
    blamed = [phase.phase for phase in finding.phases if phase.is_attributed]
    if blamed:
        names = joined(screen.show(name, cells=30) for name in blamed[:4])
        yield f"Look at what each {names} keeps alive when it ends.{_usual_suspect(blamed)}"
    elif finding.recurring is not None:
        names = joined(f"each {screen.show(n, cells=30)}" for n in finding.recurring.phases[:4])
        yield (
            f"Look for what {names} keeps alive: all add the same, so that it is probably one "
            "thing they share."
        )
    alone = next((e for e in found.evidence if e.kind is EvidenceKind.ONE_PROCESS), None)
    if alone is not None and finding.process not in {"", "tree"}:
        name = series_names.process(finding.process, screen)
        yield f"Look at what {name} does and the other processes do not."


def _usual_suspect(blamed: list[str]) -> str:
    if all(_EVALUATION.search(name) for name in blamed):
        return (
            " Often it is predictions or losses collected in a list, "
            "or a forward pass without torch.no_grad()."
        )
    if all(_CHECKPOINT.search(name) for name in blamed):
        return " Often it is a state_dict copied for the checkpoint and kept."
    return ""


def _what(found: RecordingFinding, finding: Finding, screen: Screen) -> Iterator[str]:
    """What kind of memory it is, as far as the series tell."""
    kinds = {evidence.kind: evidence for evidence in found.evidence}
    if EvidenceKind.PROCESSES_GROW in kinds:
        yield _PROCESSES
    if finding.role is Role.TENSORS:
        yield _TENSORS_KEPT
    elif found.leaking is not None and found.leaking.kind in _BY_KIND:
        yield _BY_KIND[found.leaking.kind]
    else:
        yield from [text for needed, text in _BY_EVIDENCE if needed <= kinds.keys()][:1]
    if EvidenceKind.RETRIES_RISE in kinds or EvidenceKind.OOMS_RISE in kinds:
        yield _FULL
    if EvidenceKind.COUNTER_GROWS in kinds:
        yield _counter(kinds[EvidenceKind.COUNTER_GROWS], screen)


def _counter(evidence: Evidence, screen: Screen) -> str:
    counter = series_names.reference(evidence.against or evidence.subject, screen)
    return f"Find what raises {counter} and never lowers it."


def _doubt(found: RecordingFinding, finding: Finding, screen: Screen) -> Iterator[str]:
    how = found.ending
    if finding.need_more is not None and how is not None and how.cause is not None:
        yield forecast.needs_room(finding, finding.need_more, how.limit_bytes)
        return
    if finding.need_more is not None:
        yield forecast.needs(finding, finding.need_more, screen)
    if finding.reason in _TELL_MORE:
        yield _TELL_MORE[finding.reason]
    elif finding.need_more is None:
        yield "Record a longer run of the same job."
