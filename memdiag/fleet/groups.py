"""Recordings that share a label, judged as one run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from memdiag.analysis.groups.judge_group import judge_group
from memdiag.fleet.results_file import ResultsFile, unpacked
from memdiag.values.groups import GroupFinding, Member
from memdiag.values.measurements import Role
from memdiag.values.verdict import Verdict

JOB = "job"
# What has a trend to compare: memory, not counts, and not what can never fall.
_ROLES = tuple(
    role.value
    for role in (
        Role.RESIDENT,
        Role.UNIQUE,
        Role.PROPORTIONAL,
        Role.DEVICE,
        Role.DEVICE_RESERVED,
        Role.DEVICE_ALLOCATED,
        Role.IN_USE,
        Role.HOST,
    )
)
_RANK = re.compile(r"rank[-_ ]?(\d+)(?!\d)", re.I)
_TREE = "tree"
_COLUMNS = (
    "r.path, r.labels, s.metric, s.process, s.role, s.unit, s.axis, s.verdict, s.growth_per_x, "
    "s.limit_name, s.limit_in_s, s.points, s.is_rank"
)
_HAS_RANKS = "EXISTS (SELECT 1 FROM series s WHERE s.path = r.path AND s.is_rank)"


def judge_groups(results: ResultsFile, labels: Sequence[str]) -> Iterator[GroupFinding]:
    """The finding on each job: recordings that were asked for and have the same labels, or one that
    has several ranks and lacks a label.

    Others without one of the labels, and alone in their job, are not judged. One job at a time is
    in memory.
    """
    quoted = [json.dumps(one).replace("'", "''") for one in labels]
    key = " || ' / ' || ".join(f"json_extract(r.labels, '$.{one}')" for one in quoted)
    ask = results.database.execute
    ask("CREATE TEMP TABLE IF NOT EXISTS jobs (name TEXT, path TEXT, PRIMARY KEY (name, path))")
    ask("DELETE FROM temp.jobs")
    ask(
        f"INSERT INTO temp.jobs SELECT coalesce({key}, r.path) AS name, r.path FROM recordings r "
        f"WHERE r.asked_at = ? AND ({key} IS NOT NULL OR {_HAS_RANKS})",
        (results.began_at,),
    )
    names = ask(
        f"SELECT name FROM temp.jobs r GROUP BY name HAVING count(*) > 1 OR {_HAS_RANKS} "
        "ORDER BY name"
    )
    for (name,) in names.fetchall():
        rows = ask(
            f"SELECT {_COLUMNS} FROM temp.jobs j JOIN recordings r ON r.path = j.path "
            "JOIN series s ON s.path = r.path WHERE j.name = ? ORDER BY r.path, s.number",
            (name,),
        ).fetchall()
        members = list(_members(rows))
        if len({one.rank for one in members}) > 1:
            yield judge_group(str(name), members, world_size=_world_size(rows))


def _members(rows: Sequence[Any]) -> Iterator[Member]:
    """For each recording and metric its ranks, or else its process tree, or its first process."""
    chosen: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        path, _, metric, process, role = row[:5]
        if role not in _ROLES or not row[11]:
            continue
        there = chosen.setdefault((path, metric), [])
        is_rank = bool(row[-1])
        if is_rank and not (there and there[0][-1]):
            there[:] = [row]
        elif is_rank or not there:
            there.append(row)
        elif process == _TREE and not there[0][-1]:
            there[:] = [row]
    for there in chosen.values():
        yield from map(_member, there)


def _member(row: Any) -> Member:
    (
        path,
        labels,
        metric,
        process,
        role,
        unit,
        axis,
        verdict,
        growth,
        limit,
        in_s,
        points,
        is_rank,
    ) = row
    known = json.loads(labels)
    return Member(
        rank=_rank(path, process if is_rank else "", known),
        node=str(known.get("node", "")),
        metric=metric,
        role=role,
        unit=unit,
        axis=axis,
        verdict=Verdict(verdict),
        growth_per_x=growth,
        limit_name=limit,
        limit_in_s=in_s,
        points=tuple(unpacked(points)),
    )


def _rank(path: str, process: str, labels: dict[str, str]) -> str:
    """The number of a rank: of its process, by its label, or in the name of its file; else that."""
    name = path.rpartition("/")[2]
    for text in (process, name):
        if match := _RANK.search(text):
            return str(int(match[1]))
        if text == process and labels.get("rank", "").isdigit():
            return str(int(labels["rank"]))
    return name


def _world_size(rows: Sequence[Any]) -> int | None:
    sizes = {json.loads(row[1]).get("world_size", "") for row in rows}
    size = sizes.pop() if len(sizes) == 1 else ""
    return int(size) if size.isdigit() and len(size) < 8 else None
