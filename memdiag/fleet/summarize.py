"""The summary of a file of results, by queries: nothing grows with the number of recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from memdiag.fleet.groups import JOB, judge_groups
from memdiag.fleet.results_file import ResultsFile
from memdiag.values.fleet import FleetSummary, Growing
from memdiag.values.groups import GroupFinding

_WORST, _FAILURES = 10, 5
_LEAKS = """
SELECT r.path, s.metric, s.process, s.unit, s.axis, s.growth_per_x, s.growth_per_s, s.limit_name,
    s.limit_in_s, r.judged_at = :began AND coalesce(r.previous_verdict, '') <> 'leak'
FROM recordings r JOIN series s ON s.path = r.path AND s.is_deciding
WHERE r.asked_at = :began AND r.verdict = 'leak'
ORDER BY s.limit_in_s IS NULL, s.limit_in_s, s.unit <> 'bytes', s.growth_per_s IS NULL,
    s.growth_per_s DESC, s.growth_per_x DESC, r.path
LIMIT :most
"""


def summarize(results: ResultsFile, labels: Sequence[str] = (JOB,)) -> FleetSummary:
    """What the recordings that the file was last asked for have in common.

    labels: recordings with the same of these are judged as one job.
    """
    ask = results.database.execute
    now = {"began": results.began_at}
    counts = dict(
        ask(
            "SELECT coalesce(verdict, 'error'), count(*) FROM recordings WHERE asked_at = :began "
            "GROUP BY 1",
            now,
        ).fetchall()
    )
    inconclusive = ask(
        "SELECT why, count(*) FROM recordings WHERE asked_at = :began AND verdict = 'inconclusive' "
        "GROUP BY 1 ORDER BY 2 DESC, 1",
        now,
    ).fetchall()
    judged, new, ended = ask(
        "SELECT count(*), "
        "coalesce(sum(verdict = 'leak' AND coalesce(previous_verdict, '') <> 'leak'), 0), "
        "coalesce(sum(verdict <> 'leak' AND previous_verdict = 'leak'), 0) "
        "FROM recordings WHERE judged_at = :began",
        now,
    ).fetchone()
    worst = [
        Growing(
            path=row[0],
            metric=row[1],
            process=row[2],
            unit=row[3],
            axis=row[4],
            growth_per_x=row[5],
            growth_per_s=row[6],
            limit_name=row[7],
            limit_in_s=row[8],
            is_new=bool(row[9]),
        )
        for row in ask(_LEAKS, {**now, "most": _WORST})
    ]
    failures = ask(
        "SELECT path, error FROM recordings WHERE asked_at = :began AND verdict IS NULL "
        "ORDER BY path LIMIT :most",
        {**now, "most": _FAILURES},
    ).fetchall()
    groups: Counter[str] = Counter()
    leaking: list[GroupFinding] = []
    for one in judge_groups(results, labels) if labels else ():
        groups[one.verdict.value] += 1
        if one.leaking and len(leaking) < _WORST:
            leaking.append(one)
    return FleetSummary(
        recordings=sum(counts.values()),
        judged=judged,
        counts=counts,
        inconclusive=dict(inconclusive),
        worst=tuple(worst),
        new_leaks=new,
        ended_leaks=ended,
        failures=tuple(failures),
        is_first=results.is_new,
        groups=groups,
        leaking_groups=tuple(leaking),
    )
