import json
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest
from fleets import fleet, write

from memdiag import CaptureError, MemdiagError, analyze_many
from memdiag.fleet.judge_file import How
from memdiag.fleet.results_file import ResultsFile
from memdiag.fleet.summarize import summarize
from memdiag.values.fleet import RecordingResult

ENDINGS = [".sqlite", ".parquet", ".duckdb"]


@pytest.fixture
def executor():
    with ThreadPoolExecutor(1) as pool:
        yield pool


def rows(path):
    if path.suffix == ".parquet":
        return pl.read_parquet(path).to_dicts()
    if path.suffix == ".duckdb":
        import duckdb

        with duckdb.connect(str(path), read_only=True) as database:
            cursor = database.execute("SELECT * FROM results")
            names = [one[0] for one in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    database = sqlite3.connect(path)
    database.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in database.execute("SELECT * FROM results")]
    finally:
        database.close()


@pytest.fixture(params=ENDINGS)
def results(request, tmp_path):
    if request.param == ".duckdb":
        pytest.importorskip("duckdb")
    return tmp_path / f"results{request.param}"


def test_a_second_call_judges_what_is_new_or_changed(tmp_path, executor, results):
    files = fleet(tmp_path / "f", healthy=2, leaking=1)
    first = list(analyze_many(tmp_path / "f", executor=executor, results=results))
    assert {one.path for one in first} == {str(file) for file in files}
    assert {row["path"] for row in rows(results)} == {str(file) for file in files}
    write(files[0], leak_mb=2)
    os.utime(files[1])  # its content is the same
    new = write(tmp_path / "f" / "new.csv")
    second = {
        one.path: one for one in analyze_many(tmp_path / "f", executor=executor, results=results)
    }
    judged = {path for path, one in second.items() if not one.is_unchanged}
    assert judged == {str(files[0]), str(new)}
    kept = {row["path"]: row for row in rows(results)}
    assert len(kept) == len(rows(results)) == 4
    assert kept[str(files[0])]["verdict"] == "leak"
    assert kept[str(files[0])]["previous_verdict"] == "warmup"
    assert kept[str(files[1])]["verdict"] == "warmup"
    assert list(tmp_path.glob("*.partial*")) == []


def test_a_recording_that_cannot_be_read_is_a_row_and_judged_once_it_can(
    tmp_path, executor, results
):
    file = tmp_path / "run.csv"
    file.write_text("nothing of memory")
    list(analyze_many(file, executor=executor, results=results))
    (row,) = rows(results)
    assert row["verdict"] is None
    assert row["error"]
    assert row["metric"] is None
    write(file)
    list(analyze_many(file, executor=executor, results=results))
    (row,) = rows(results)
    assert row["verdict"] == "warmup"
    assert row["error"] == ""
    assert row["previous_verdict"] == "error"


def test_a_call_that_is_stopped_is_continued(tmp_path, executor):
    results = tmp_path / "out.parquet"
    fleet(tmp_path / "f", healthy=40, leaking=0)
    stopped = analyze_many(tmp_path / "f", executor=executor, results=results)
    for _ in range(5):
        next(stopped)
    stopped.close()
    assert not results.exists()
    rest = list(analyze_many(tmp_path / "f", executor=executor, results=results))
    assert len(rest) == 40
    assert sum(one.is_unchanged for one in rest) >= 5
    assert len(rows(results)) == 40


def test_one_command_at_a_time_uses_a_file(tmp_path):
    for name in ("out.sqlite", "out.parquet"):
        in_use = pytest.raises(CaptureError, match="in use by another memdiag")
        with ResultsFile(tmp_path / name), in_use:
            ResultsFile(tmp_path / name)
        with ResultsFile(tmp_path / name):
            pass


@pytest.mark.parametrize("name", ["out.sqlite", "out.parquet"])
def test_files_of_others_are_not_touched(tmp_path, name):
    path = tmp_path / name
    path.write_text("precious" * 1000)
    with pytest.raises(MemdiagError, match="does not hold results"):
        ResultsFile(path)
    assert path.read_text() == "precious" * 1000
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    if path.suffix == ".sqlite":
        with pytest.raises(MemdiagError, match="does not hold results"):
            ResultsFile(path)
        assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["out.sqlite", "out.parquet"])
def test_a_link_that_is_put_there_while_it_is_opened_is_not_followed(tmp_path, monkeypatch, name):
    """As by another user, in a directory that all may write to."""
    path, connect = tmp_path / name, sqlite3.connect
    victim = tmp_path / "victim.sqlite"
    with ResultsFile(victim):
        pass
    before = victim.read_bytes()
    working = path if path.suffix == ".sqlite" else tmp_path / "out.parquet.partial"

    def connect_late(*args, **kwargs):
        working.unlink()
        working.symlink_to(victim)
        return connect(*args, **kwargs)

    monkeypatch.setattr(sqlite3, "connect", connect_late)
    with pytest.raises(MemdiagError, match="does not hold results"):
        ResultsFile(path)
    assert victim.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == [working.name, "victim.sqlite"]


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_links_where_sqlite_makes_files_are_refused(tmp_path, ending):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f"out.sqlite{ending}").symlink_to(victim)
    with pytest.raises(MemdiagError, match="does not hold results"):
        ResultsFile(tmp_path / "out.sqlite")
    assert victim.read_text() == "precious"


def test_a_full_disk_is_an_error_and_what_was_kept_stays(tmp_path):
    full = pytest.raises(
        MemdiagError, match=r"out\.sqlite cannot be used: database or disk is full"
    )
    with full, ResultsFile(tmp_path / "out.sqlite") as results:
        results.add(RecordingResult(path="a", error="it was empty"), "")
        results.database.commit()
        results.database.execute("PRAGMA max_page_count = 1")
        for number in range(10_000):
            results.add(RecordingResult(path=f"{number}", error="it was empty"), "")
    with ResultsFile(tmp_path / "out.sqlite") as results:
        assert not results.is_new


def test_a_directory_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(MemdiagError, match="cannot be opened: No such file or directory"):
        ResultsFile(tmp_path / "nowhere" / "out.sqlite")


def test_a_database_of_others_is_not_touched(tmp_path):
    path = tmp_path / "out.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE recordings (path TEXT)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(MemdiagError, match="does not hold results"):
        ResultsFile(path)
    assert path.read_bytes() == before


def test_other_options_have_everything_judged_again(tmp_path):
    with ResultsFile(tmp_path / "out.sqlite") as results:
        assert results.known(["a"], How().digest)[0].tag == ""
    assert How().digest != How(planned_x=7.0).digest


def test_the_summary_names_new_leaks_and_why_others_are_open(tmp_path, executor):
    results = tmp_path / "out.sqlite"
    files = fleet(tmp_path / "f", healthy=2, leaking=2)
    write(tmp_path / "f" / "short.csv", leak_mb=3, steps=12)
    list(analyze_many(tmp_path / "f", executor=executor, results=results))
    write(files[0], leak_mb=4)
    write(files[-1])
    (tmp_path / "f" / "broken.csv").write_bytes(bytes(range(256)))
    from memdiag.fleet import engines, run
    from memdiag.fleet.paths import paths

    with ResultsFile(results) as kept:
        engine = engines.of_executor(executor)
        run.judge_into(kept, paths([str(tmp_path / "f")]), engine, How())
        found = summarize(kept)
    assert found.recordings == 6
    assert found.judged == 3
    assert found.new_leaks == 1
    assert found.ended_leaks == 1
    assert [one.path for one in found.worst if one.is_new] == [str(files[0])]
    assert found.counts["inconclusive"] == sum(found.inconclusive.values()) == 1
    assert [path for path, _ in found.failures] == [str(tmp_path / "f" / "broken.csv")]
    assert not found.is_first


def test_labels_are_kept_as_json(tmp_path, executor):
    fleet(tmp_path / "nightly", healthy=1, leaking=0)
    list(analyze_many(tmp_path / "nightly", executor=executor, results=tmp_path / "o.sqlite"))
    assert json.loads(rows(tmp_path / "o.sqlite")[0]["labels"]) == {"directory": "nightly"}
