"""Seeded recordings whose truth is known, of jobs that `_series` has none of.

    python benchmarks/_jobs.py [--seed 1] [--per-family 20] [--list] [FAMILY ...]

Long waves, passes over the data, services and monitors (`_one_meter.py`); several meters of one
process (`_many_meters.py`); several processes (`_processes.py`). The truth of a recording is one
of those of `_series`: bounded, truncated, leak or grey. It follows from the mechanism and from what
the best meter can show of it, never from a verdict. Prints how often memdiag gives each verdict.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import _many_meters as many
import _one_meter as one
import _processes as processes
import numpy as np
from _one_meter import Maker

from memdiag.analysis.diagnose import diagnose
from memdiag.values.measurements import Recording
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict

TRUTHS = ("bounded", "truncated", "leak", "grey")

_MAKERS: Mapping[str, Maker] = MappingProxyType(
    {
        "waves": partial(one.day_waves, then="returns"),
        "waves_rise": partial(one.day_waves, then="rises"),
        "waves_after_warmup": partial(one.day_waves, then="warms_up"),
        "few_days_rise": one.few_days_rise,
        "pass_cache": partial(one.pass_cache, cut=False),
        "pass_cache_cut": partial(one.pass_cache, cut=True),
        "pass_leak": one.pass_leak,
        "evaluations": partial(one.evaluations, leaves=False),
        "evaluations_leave": partial(one.evaluations, leaves=True),
        "service": partial(one.service, then="fills"),
        "service_cut": partial(one.service, then="cut"),
        "service_leak": partial(one.service, then="leaks"),
        "slow_service": partial(one.slow_service, then="settles"),
        "slow_service_cut": partial(one.slow_service, then="cut"),
        "slow_service_leak": partial(one.slow_service, then="leaks"),
        "epochs": partial(one.epochs, leaks=False),
        "epochs_leak": partial(one.epochs, leaks=True),
        "monitor": partial(one.monitor, leaks=False),
        "monitor_leak": partial(one.monitor, leaks=True),
        "holes": many.holes,
        "touched_holes": many.touched_holes,
        "full_cache": many.full_cache,
        "full_cache_and_leak": many.leak_beside_full_cache,
        "native_leak": many.native_leak,
        "malloc_leak": many.malloc_leak,
        "tensors": many.tensors_stable,
        "tensors_leak": many.tensors_leak,
        "objects_leak": many.objects_leak,
        "garbage_waits": partial(many.garbage, then="waits"),
        "garbage_collected": partial(many.garbage, then="collected"),
        "garbage_and_leak": partial(many.garbage, then="kept"),
        "shared_pages": partial(many.shared_pages, leaks=False),
        "shared_pages_and_leak": partial(many.shared_pages, leaks=True),
        "device_cache": partial(many.device, grows="reserved"),
        "device_leak": partial(many.device, grows="allocated"),
        "device_leak_outside": partial(many.device, grows="driver"),
        "workers_copy": partial(processes.workers, leaks=False),
        "worker_leak": partial(processes.workers, leaks=True),
        "restarted_workers": partial(processes.restarted_workers, leaks=False),
        "restarted_workers_leak": partial(processes.restarted_workers, leaks=True),
        "ranks_filling": partial(processes.ranks, then="filling"),
        "ranks_full": partial(processes.ranks, then="full"),
        "rank_leak": partial(processes.ranks, then="leaks"),
        "steps_of_each": processes.steps_of_each,
    }
)
FAMILIES = tuple(_MAKERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One recording with its truth."""

    name: str
    family: str
    truth: str
    recording: Recording


def make(family: str, seed: int, number: int) -> Job:
    """Recording `number` of a family; the same arguments give the same recording."""
    rng = np.random.default_rng([seed, *family.encode(), number])
    drawn = _MAKERS[family](rng)
    name = f"{family}-{number:03d}"
    recording = Recording(source=name, series=drawn.series)
    return Job(name=name, family=family, truth=drawn.truth, recording=recording)


def is_wrong(truth: str, verdict: Verdict) -> bool:
    """A false alarm, or a leak that is called stable."""
    if verdict is Verdict.LEAK:
        return truth in ("bounded", "truncated")
    return truth == "leak" and verdict in STABLE_OR_WARMUP


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-family", type=int, default=20)
    parser.add_argument("--list", action="store_true", help="name each wrong verdict")
    given = parser.parse_args(arguments)
    print(f"{'family':24}{'truth':11}{'jobs':>5}{'leak':>6}{'open':>6}{'stable':>6}  wrong")
    for family in given.families or FAMILIES:
        said: Counter[tuple[str, str]] = Counter()
        wrong: dict[str, list[str]] = {}
        for number in range(given.per_family):
            job = make(family, given.seed, number)
            found = diagnose(job.recording)
            said[job.truth, _short(found.verdict)] += 1
            if is_wrong(job.truth, found.verdict):
                by = found.deciding
                told = "" if by is None else f" {by.process} {by.metric} {by.reason}"
                wrong.setdefault(job.truth, []).append(f"{job.name}: {found.verdict.name}{told}")
        for truth in [t for t in TRUTHS if any(key[0] == t for key in said)]:
            counts = [said[truth, verdict] for verdict in ("leak", "open", "stable")]
            figures = "".join(f"{count:6}" for count in counts)
            print(f"{family:24}{truth:11}{sum(counts):5}{figures}  {len(wrong.get(truth, []))}")
            if given.list:
                print("".join(f"    {line}\n" for line in wrong.get(truth, [])), end="")


def _short(verdict: Verdict) -> str:
    if verdict is Verdict.LEAK:
        return "leak"
    return "stable" if verdict in STABLE_OR_WARMUP else "open"


if __name__ == "__main__":
    main()
