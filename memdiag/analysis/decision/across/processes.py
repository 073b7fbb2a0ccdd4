"""A process, the tree that it belongs to, and metrics that were read too rarely."""

from __future__ import annotations

from collections.abc import Sequence

from memdiag.analysis.decision.across.generations import (
    generations,
    moment_s,
    rise_at_equal_age,
)
from memdiag.analysis.decision.across.series_set import (
    COUNTS,
    Changes,
    SeriesSet,
    lost_by,
    name,
    onset,
)
from memdiag.analysis.decision.case import Rule
from memdiag.analysis.policy import PAGES
from memdiag.values.findings import Finding
from memdiag.values.measurements import ON_DEVICE, Role
from memdiag.values.verdict import STABLE_OR_WARMUP, Argument, Reason, Verdict


@Rule
def stable_processes(finding: Finding, series: SeriesSet) -> tuple[Argument, Changes] | None:
    """No process of a tree grows by the same metric, nor is one that replaces another larger at the
    same age; together they are nearly all of it.

    Small steps of each at different times do not add up to growth of the whole. Workers that each
    epoch starts anew take as much each time, and a little more of their parent's pages.
    """
    if finding.process != "tree":
        return None
    alike = [f for f in series.findings if f.metric == finding.metric]
    parts = [f for f in alike if f.process not in {"", "tree"}]
    number = [f for f in series.findings if f.role is Role.PROCESSES]
    replaced = _replaced(finding, parts, series)
    lasting = [f for f in parts if f.process not in replaced]
    if len(parts) < 2 or not all(f.verdict in STABLE_OR_WARMUP for f in (*lasting, *number)):
        return None
    if max((part.samples for part in lasting), default=0) < finding.samples // 2:
        return None
    common, least = series.policy.common, series.policy.common.stable_growth * finding.latest_value
    known = sum(f.latest_value for f in lasting) + sum(most for most, _ in replaced.values())
    if known < (1 - common.little) * finding.latest_value:
        return None
    if sum(rise for _, rise in replaced.values()) > least:
        return None
    argument = Argument(
        text="none of the {parts} processes grows, and together they hold nearly all of the memory",
        numbers={"parts": float(len(parts))},
        reason=Reason.OVERRULED,
        verdict=Verdict.WARMUP if series.rise(finding, finding.first_x) > least else Verdict.STABLE,
    )
    sure = min(f.confidence for f in lasting)
    return argument, {"confidence": min(sure, series.policy.reporting.borrowed_confidence)}


def _replaced(
    tree: Finding, parts: Sequence[Finding], series: SeriesSet
) -> dict[str, tuple[float, float]]:
    """The most memory of each process that was replaced again and again since the tree's growth
    began, and by how much the last one was larger than the first at the same age."""
    since_x = max(onset(tree), tree.first_x if tree.onset_x else series.warmed_up_x(tree))
    since_s = moment_s(series.recorded, tree, since_x)
    found = {}
    for part in parts:
        every = generations(series.recorded, part.process, part.metric)
        recent = [one for one in every if since_s is not None and one.at_s[-1] >= since_s]
        rise = rise_at_equal_age(recent, series.policy.common)
        if rise is not None and part.verdict is not Verdict.LEAK:
            found[part.process] = max(float(one.y.max()) for one in recent), rise
    return found


@Rule
def lost_sharing(finding: Finding, series: SeriesSet) -> tuple[Argument, Changes] | None:
    """USS or PSS grows and RSS, which counts a shared page once per process, does not.

    The same pages are shared less and less: forked workers make copies of the parent's pages, also
    of those that they only read; or another program ends that uses the same libraries. RSS is the
    bound: then every process has its own copy. If the growth of one process of a tree is open,
    `bounded_by` settles it.
    """
    resident = lost_by(finding, series)
    is_open = finding.verdict is Verdict.INCONCLUSIVE and finding.process == "tree"
    if resident is None or not (is_open or finding.verdict is Verdict.LEAK):
        return None
    reporting = series.policy.reporting
    shared = "workers copy pages that they shared with their parent"
    if series.is_of_one:
        shared = "other programs no longer use pages that they shared with it"
    argument = Argument(
        text=f"RSS did not grow: {shared}, {{grown_y}} so far, and {{bound_y}} (RSS) is the most "
        "that it can reach",
        numbers={
            "grown_y": finding.latest_value - finding.start_value,
            "bound_y": resident.peak_value,
        },
        against=name(resident),
        reason=Reason.OVERRULED if series.is_of_one else Reason.UNSHARED,
        verdict=Verdict.WARMUP,
    )
    sure = min(resident.confidence, reporting.borrowed_confidence)
    within = [hit for hit in finding.limit_hits if hit.limit_bytes <= resident.peak_value]
    return argument, {
        "confidence": sure,
        "onset_x": None,
        "forecasts": (),
        "limit_hits": tuple(within),
    }


@Rule
def counted_again(finding: Finding, series: SeriesSet) -> Argument | None:
    """RSS of the tree grows, and its PSS or its cgroup's charge, which count each page once, do
    not; or RSS or PSS of a process, whose USS does not grow either.

    Processes map the same pages one after the other: a file in memory, the parent's data. Judged
    after the first third, which may be a warm-up. (If PSS is still open, so is the recording.)
    """
    if not (_is_of_tree(finding) or _shares_what_it_gains(finding, series)):
        return None
    common = series.policy.common
    since = max(onset(finding), series.warmed_up_x(finding))
    for other in series.findings:
        counts_once = other.process == "tree" and other.role is Role.PROPORTIONAL
        if not counts_once or other.verdict is Verdict.LEAK or other.samples < common.few_samples:
            continue
        if series.rise(other, since) <= common.most * series.rise(finding, since):
            return Argument(
                text="memory that counts each shared page once does not grow",
                against=name(other),
                reason=Reason.OVERRULED,
            )
    return None


def _is_of_tree(finding: Finding) -> bool:
    return finding.process == "tree" and finding.role is Role.RESIDENT


def _shares_what_it_gains(finding: Finding, series: SeriesSet) -> bool:
    """Return True for pages of a process that has no more of its own."""
    if finding.process == "tree" or finding.role not in (Role.RESIDENT, Role.PROPORTIONAL):
        return False
    own = [f for f in series.same(finding) if f.role is Role.UNIQUE]
    return any(f.verdict in STABLE_OR_WARMUP and series.saw(f, finding) for f in own)


@Rule
def short_lived_process(finding: Finding, series: SeriesSet) -> Argument | None:
    """A process that has ended, or existed for a small part of the run: a worker that each epoch
    starts anew. Its growth is not the job's where the tree's pages do not grow for as long.
    """
    if finding.role in ON_DEVICE:  # about which the tree's pages say nothing
        return None
    pages = [f for f in series.findings if f.role in PAGES]
    seen = max((f.samples for f in pages if f.process == finding.process), default=0)
    tree = max((f.samples for f in pages if f.process == "tree"), default=0)
    is_part = finding.process not in {"", "main", "tree"}
    rarely = is_part and seen < series.policy.common.warm_share * tree
    whole = [f for f in pages if f.process == "tree" and f.role is Role.RESIDENT]
    if not (rarely or finding.process in series.ended) or not whole:
        return None
    if not all(f.verdict in STABLE_OR_WARMUP and _was_level(f, finding, series) for f in whole):
        return None
    return Argument(
        text="its process existed for only part of the run, and all processes together do not grow",
        reason=Reason.OVERRULED,
        verdict=Verdict.STABLE,
    )


def _was_level(tree: Finding, finding: Finding, series: SeriesSet) -> bool:
    """Return True if a tree has been level for as long as a process grew.

    It is for a moment while processes end their work, however long that was.
    """
    if tree.plateau is None:
        return True
    level_s = _seconds(tree, tree.plateau.since_x.value, series)
    grown_s = _seconds(finding, onset(finding), series)
    return level_s is None or grown_s is None or level_s >= grown_s


def _seconds(finding: Finding, since_x: float, series: SeriesSet) -> float | None:
    """How long it was read since a position; None if unknown."""
    since_s = moment_s(series.recorded, finding, since_x)
    last_s = moment_s(series.recorded, finding, finding.last_x)
    return None if since_s is None or last_s is None else last_s - since_s


@Rule
def read_more_often(finding: Finding, series: SeriesSet) -> Argument | None:
    """A metric with too few readings is settled by another of the same memory that has more."""
    if finding.reason is not Reason.TOO_FEW_SAMPLES:
        return None
    for f in series.same(finding):
        if f.verdict in STABLE_OR_WARMUP and f.role not in COUNTS and f.samples > finding.samples:
            return Argument(
                text="another metric of the same memory was read more often and does not grow",
                against=name(f),
                reason=Reason.OVERRULED,
                verdict=Verdict.STABLE,
            )
    return None
