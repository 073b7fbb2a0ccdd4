"""Whose rows are whose in our own recordings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from logs import read_log


def test_a_process_that_got_its_name_late_is_one_series_in_our_recordings(tmp_path: Path) -> None:
    rows = [
        f"{at},,,{pid},{label},{1000 * pid + at}\n"
        for at in range(6)
        for pid, label in (
            (6, "bash 6" if at < 1 else "python 6" if at < 3 else "main"),
            (7, "python 7" if at < 2 else "DataLoader worker 0"),
            (8, "helper 8"),
            (5, "python 5" if at < 2 else "rank0 (5)"),
            (9, "python 9" if at < 3 else "python 9 (2)"),
            (7, "tree"),
        )
    ]
    recording = read_log(
        tmp_path, "at_s,step,phase,pid,process,rss_bytes\n" + "".join(rows), "run.csv"
    )
    sizes = {series.process: len(series.y) for series in recording.series}
    assert sizes.pop("DataLoader worker 0") == 6
    assert sizes.pop("rank0 (5)") == 6
    assert sizes == {"main": 6, "helper 8": 6, "python 9": 3, "python 9 (2)": 3, "tree": 6}


def test_ranks_that_were_spawned_are_one_series_each_from_their_start(tmp_path: Path) -> None:
    """They begin without a name, get one from multiprocessing, and tell torch their rank."""
    stages = {
        5: ("python 5", "multiprocessing child", "SpawnProcess-1", "rank0 SpawnProcess-1"),
        6: ("python 6", "multiprocessing child (6)", "SpawnProcess-2", "rank1 SpawnProcess-2"),
    }
    rows = [
        f"{at},,,{pid},{names[min(at // 2, 3)]},{1000 * pid + at}\n"
        for at in range(9)
        for pid, names in stages.items()
    ]
    recording = read_log(
        tmp_path, "at_s,step,phase,pid,process,rss_bytes\n" + "".join(rows), "run.csv"
    )
    sizes = {series.process: len(series.y) for series in recording.series}
    assert sizes == {"rank0 SpawnProcess-1": 9, "rank1 SpawnProcess-2": 9}


def _with_helpers(peak_bytes: int) -> str:
    """A run of ten seconds, and each second a helper that lives for 0.3 s of it."""
    rows = ["at_s,step,phase,pid,process,rss_bytes\n"]
    for tick in range(100):
        at_s, pid = tick / 10, 100 + tick // 10
        rows.append(f"{at_s},,,7,main,{9_000_000 + tick}\n")
        if tick % 10 < 3:
            rows.append(f"{at_s},,,{pid},cc1 {pid},{peak_bytes + pid}\n")
        rows.append(f"{at_s},,,7,tree,{10_000_000 + tick}\n")
    return "".join(rows)


def test_helpers_that_soon_went_are_no_series_and_told_of_when_they_were_large(
    tmp_path: Path,
) -> None:
    recording = read_log(tmp_path, _with_helpers(3_000_000), "run.csv")
    assert {series.process for series in recording.series} == {"main", "tree"}
    told = (
        "10 processes lived for less than 1 s (the largest, cc1 109, took 3 MB): counted in the"
        " tree's total alone"
    )
    assert [note for note in recording.notes if "lived for less than 1 s" in note] == [told]
    small = read_log(tmp_path, _with_helpers(300_000), "run.csv")
    assert not any("lived for less" in note for note in small.notes)


@pytest.mark.parametrize("most_processes", [1, 2])
def test_a_tree_of_one_process_has_all_readings_of_that_process(
    tmp_path: Path, most_processes: int
) -> None:
    """Of a tree with a short-lived helper, its own total counts."""
    rows = ["at_s,step,phase,pid,process,rss_bytes,processes\n"]
    for tick in range(40):
        rows.append(f"{tick / 10},{tick},,7,main,{9_000_000 + tick},\n")
        if tick % 4 == 0:
            count = most_processes if tick == 20 else 1
            rows.append(f"{tick / 10},{tick},,7,tree,{9_000_000 + tick},{count}\n")
    recording = read_log(tmp_path, "".join(rows), "run.csv")
    read = {s.process: len(s.y) for s in recording.series if s.metric == "rss_bytes"}
    assert read == {"main": 40, "tree": 40 if most_processes == 1 else 10}


def test_the_sidecar_says_which_processes_are_ranks_of_a_job(tmp_path: Path) -> None:
    rows = [
        f"{at},{at},,{pid},{label},{1000 * at + pid}\n"
        for at in range(6)
        for pid, label in ((5, "rank0"), (6, "rank1"), (7, "main"), (7, "tree"))
    ]
    ranks = [
        {"pid": 5 + n, "label": f"rank{n}", "rank": n, "local_rank": n, "world_size": 2, "role": ""}
        for n in range(2)
    ]
    main = {"pid": 7, "label": "main", "rank": None, "world_size": None, "role": ""}
    about = {"processes": [*ranks, main]}
    sidecar = {"memdiag_recording": 1, "complete": True, "about": about}
    (tmp_path / "run.meta.json").write_text(json.dumps(sidecar))
    recording = read_log(
        tmp_path, "at_s,step,phase,pid,process,malloc_bytes\n" + "".join(rows), "run.csv"
    )
    assert {s.process for s in recording.series if s.is_rank} == {"rank0", "rank1"}
    assert "a distributed job: all 2 ranks are in this recording" in recording.notes
