"""What the interventions of a run have returned, and if they are worth repeating."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from memdiag.probe.ring_format import BLOCK_BYTES
from memdiag.values.findings import Advice, Fix, Freed, GrowthCause, InterventionFinding
from memdiag.values.holders import Intervention, ProcessInterventions

# What an intervention has to return to count: more than the noise of pages, and a part of the
# resident size. Heuristic.
_LEAST_BYTES, _LEAST_PART = 2_000_000, 0.01
_FOUND = {
    "gc_collect": Advice.CYCLES,
    "empty_cache": Advice.CACHE,
    "malloc_trim": Advice.HOLES,
}


def with_interventions(
    cause: GrowthCause | None, recorded: Sequence[ProcessInterventions]
) -> GrowthCause | None:
    """The cause with what came back when memory was freed."""
    found = tuple(
        _finding(one, action)
        for one in recorded
        for action in dict.fromkeys(done.action for done in one.done)
    )
    if not found:
        return cause
    cause = cause or GrowthCause(kind=None, share_explained=None, culprits=(), fix=None)
    is_cyclic = any(one.advice is Advice.CYCLES for one in found)
    fix = Fix.BREAK_CYCLE if is_cyclic and cause.fix is Fix.RELEASE else cause.fix
    return replace(cause, fix=fix, interventions=found)


def _finding(one: ProcessInterventions, action: str) -> InterventionFinding:
    done = [each for each in one.done if each.action == action]
    times = [_freed(each) for each in done]
    # The first also returns what importing and starting have left.
    later = times[1:] or times
    returned = _median([each.returned_bytes for each in later])
    on_device = _median([each.returned_device_bytes for each in later])
    last = times[-1]
    has_steps = last.step is not None and last.step > 0 and last.at_s > one.began_s
    return InterventionFinding(
        process=one.process,
        action=action,
        advice=_advice(action, times),
        times=tuple(times),
        returned_bytes=returned,
        returned_device_bytes=on_device,
        returned_per_step=_per_step(times),
        took_s=median(each.took_s for each in times),
        step_s=(last.at_s - one.began_s) / last.step if has_steps and last.step else None,
    )


def _per_step(times: Sequence[Freed]) -> float | None:
    """What each step leaves to be returned. The first returns what the start has left, too."""
    first, last = times[0], times[-1]
    if first.step is None or last.step is None or last.step <= first.step:
        return None
    returned = sum(
        (one.returned_bytes or 0) + (one.returned_device_bytes or 0) for one in times[1:]
    )
    return returned / (last.step - first.step)


def _freed(done: Intervention) -> Freed:
    returned, on_device = _RETURNED[done.action](done)
    return Freed(
        at_s=done.at_s,
        step=done.step,
        took_s=done.took_s,
        returned_bytes=returned,
        returned_device_bytes=on_device,
        before=done.before,
        after=done.after,
    )


def _of_collection(done: Intervention) -> tuple[int | None, int | None]:
    """Bytes that were freed: of malloc and Python's allocator, and of device allocators."""
    malloc, blocks = _fall(done, "malloc_bytes"), _fall(done, "python_blocks")
    returned = None if malloc is None else malloc + BLOCK_BYTES * (blocks or 0)
    return _fall(done, "rss_bytes") if returned is None else returned, _devices(done, "_allocated_")


def _of_cache(done: Intervention) -> tuple[int | None, int | None]:
    return _fall(done, "rss_bytes"), _devices(done, "_reserved_")


def _of_trim(done: Intervention) -> tuple[int | None, int | None]:
    return _fall(done, "rss_bytes"), None


_RETURNED = {"gc_collect": _of_collection, "empty_cache": _of_cache, "malloc_trim": _of_trim}


def _devices(done: Intervention, part: str) -> int | None:
    found = [_fall(done, name) for name in done.before if part in name]
    known = [one for one in found if one is not None]
    return sum(known) if known else None


def _fall(done: Intervention, metric: str) -> int | None:
    """What a metric has fallen by; 0 if it rose: other threads allocate meanwhile."""
    if metric not in done.before or metric not in done.after:
        return None
    return max(0, done.before[metric] - done.after[metric])


def _advice(action: str, times: Sequence[Freed]) -> Advice:
    first, *later = map(_counts, times)
    if sum(later) * 2 > len(later):
        return _FOUND[action]
    if not first:
        return Advice.USELESS
    return Advice.ONCE if later else Advice.UNCLEAR


def _counts(one: Freed) -> bool:
    """Return True if it returned more than noise, on the host or on a device."""
    host = one.returned_bytes or 0
    enough = max(_LEAST_BYTES, _LEAST_PART * one.before.get("rss_bytes", 0))
    return host >= enough or (one.returned_device_bytes or 0) >= _LEAST_BYTES


def _median(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return int(median(known)) if known else None
