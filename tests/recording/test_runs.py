"""The place for runs: what is kept, found and removed there, whatever else is in it."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from memdiag.errors import UsageError
from memdiag.recording.native.runs import (
    RECORDING,
    REPORT,
    Place,
    RunFiles,
    is_run_name,
    name_of,
    remove,
    resolve,
    runs_in,
)
from memdiag.recording.native.writer import Writer
from memdiag.values.measurements import Ending, Sample

BEGAN_AT = datetime(2026, 2, 7, 12, 0, tzinfo=timezone.utc).astimezone()
REPORT_TEXT = '{\n  "schema_version": 2,\n  "verdict": "stable"}\n'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(path=tmp_path / ".memdiag")


def record(place: Place, *, minutes: int = 0, report: str = REPORT_TEXT) -> Path:
    """A run that began `minutes` after the first one: its directory."""
    began_at = BEGAN_AT + timedelta(minutes=minutes)
    files = RunFiles(place, ["python", "train.py"], 4711, began_at)
    about = {"command": ["python", "train.py"]}
    writer = Writer(files, about=about, interval_s=0.1)
    writer.add([Sample(at_s=0.1, pid=4711, process="main", readings={"rss_bytes": 1000})])
    writer.close(ending=Ending(code=0))
    if report:
        files.keep_report(report)
    files.close()
    return files.path.parent


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python", "-u", "train.py", "--lr", "1"], "train"),
        (["python", "-m", "pkg.train"], "pkg.train"),
        (["torchrun", "--nproc-per-node", "2", "/work/fit.py"], "fit"),
        (["sleep", "1"], "sleep"),
        (["/bin/sh", "-c", "a; b"], "sh"),
        (["..", "x"], "run"),
        (["a/b/\x1b[31m日本 $(rm).py"], "31m_rm"),
        ([], "run"),
    ],
)
def test_run_is_named_by_its_program(command: list[str], name: str) -> None:
    assert name_of(command) == name


def test_run_has_a_directory_that_git_ignores(place: Place) -> None:
    directory = record(place)
    assert directory.parent == place.runs
    assert directory.name == f"{BEGAN_AT:%Y%m%d-%H%M%S}-train-4711"
    assert is_run_name(directory.name)
    names = sorted(path.name for path in directory.iterdir())
    assert names == ["recording.csv", "recording.meta.json", "report.json"]
    assert (place.path / ".gitignore").read_text().endswith("\n*\n")


def test_directory_of_the_user_gets_no_gitignore(tmp_path: Path) -> None:
    record(Place(path=tmp_path, is_named=True))
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_two_runs_of_one_moment_do_not_meet(place: Place) -> None:
    assert record(place) != record(place)
    assert len(runs_in(place)) == 2


def test_newest_run_is_first(place: Place) -> None:
    directories = [record(place, minutes=minutes) for minutes in (0, 20, 10)]
    runs = runs_in(place)
    assert [run.id for run in runs] == [directories[at].name for at in (1, 2, 0)]
    assert runs[0].began_at == BEGAN_AT + timedelta(minutes=20)
    assert runs[0].command == ("python", "train.py")
    assert runs[0].report["verdict"] == "stable"
    assert not runs[0].is_recording
    for word, at in (("last", 1), ("last~0", 1), ("last~2", 0), (directories[2].name, 2)):
        assert resolve(place, word) == directories[at] / RECORDING
    with pytest.raises(UsageError, match="only 3 runs"):
        resolve(place, "last~3")
    with pytest.raises(UsageError, match="no run 20200101-000000-x-1"):
        resolve(place, "20200101-000000-x-1")
    for word in ("lastly", "last~", "train.csv", "99999999-000000-x-1"):
        assert not is_run_name(word)


def test_no_place_has_no_runs(place: Place) -> None:
    assert runs_in(place) == []
    with pytest.raises(UsageError, match="no run in"):
        resolve(place, "last")


def test_run_that_is_recorded_is_not_removed(place: Place) -> None:
    files = RunFiles(place, ["sleep"], 1, BEGAN_AT)
    (run,) = runs_in(place)
    assert run.is_recording, "there is no sidecar yet"
    writer = Writer(files, about={}, interval_s=0.1)
    (run,) = runs_in(place)
    assert run.is_recording
    with pytest.raises(OSError, match="not empty"):
        remove(place, run)
    writer.close()
    files.close()
    (run,) = runs_in(place)
    assert not run.is_recording
    remove(place, run)
    assert runs_in(place) == []


def test_run_that_never_began_leaves_nothing(place: Place) -> None:
    RunFiles(place, ["no-such-command"], 1, BEGAN_AT).discard()
    assert list(place.runs.iterdir()) == []


def test_damaged_report_is_none(place: Place) -> None:
    for minutes, text in enumerate(("", "{", "[]", "\x00" * 100)):
        record(place, minutes=minutes, report=text)
    assert [run.report for run in runs_in(place)] == [{}, {}, {}, {}]


def _link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("notes.txt", Path.touch),
        ("checkpoints", Path.mkdir),
        (REPORT, os.mkfifo),
        (REPORT, _link),
        (REPORT, lambda path: path.write_text("my own notes")),
        (".report.json.0123456789abcdef.tmp", Path.mkdir),
    ],
)
def test_directory_with_anything_else_stays_whole(place: Place, name: str, make) -> None:
    directory = record(place, report="")
    make(directory / name)
    before = sorted(path.name for path in directory.iterdir())
    (run,) = runs_in(place)
    assert run.others == (name,)
    with pytest.raises(OSError, match="not empty"):
        remove(place, run)
    assert sorted(path.name for path in directory.iterdir()) == before


def test_temporary_file_of_a_killed_memdiag_is_removed_with_its_run(place: Place) -> None:
    directory = record(place)
    (directory / ".report.json.0123456789abcdef.tmp").touch()
    (run,) = runs_in(place)
    remove(place, run)
    assert not directory.exists()


def test_links_and_other_names_are_no_runs(place: Place, tmp_path: Path) -> None:
    directory = record(place)
    elsewhere = tmp_path / "elsewhere"
    directory.rename(elsewhere)
    (place.runs / directory.name).symlink_to(elsewhere)
    (place.runs / "20260101-000000-x-1").write_text("a file")
    (place.runs / "train").mkdir()
    assert runs_in(place) == []


@pytest.mark.parametrize("part", ["", "runs"])
def test_place_that_is_a_link_is_refused_unless_named(place: Place, tmp_path: Path, part) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if part:
        place.path.mkdir()
    (place.path / part if part else place.path).symlink_to(elsewhere)
    with pytest.raises(UsageError):
        record(place)
    with pytest.raises(UsageError):
        runs_in(place)
    assert list(elsewhere.iterdir()) == []
    if not part:
        record(Place(path=place.path, is_named=True))
        assert [path.name for path in elsewhere.iterdir()] == ["runs"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_place_of_a_user_who_owns_neither_it_nor_its_parent_is_refused(tmp_path: Path) -> None:
    place = Place(path=tmp_path / ".memdiag")
    place.path.mkdir()
    os.chown(place.path, 4242, 4242)
    with pytest.raises(UsageError, match="belongs to another user"):
        record(place)
    os.chown(tmp_path, 4242, 4242)  # a project of theirs, in which root works
    record(place)
    assert len(runs_in(place)) == 1
