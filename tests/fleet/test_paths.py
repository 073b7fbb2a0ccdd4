import sys

import pytest
from fleets import fleet, write

from memdiag import ReadError
from memdiag.fleet.judge_file import How, Task, judge_files
from memdiag.fleet.paths import paths


def test_every_recording_is_named_once(tmp_path):
    files = [str(file) for file in fleet(tmp_path / "f", healthy=3, leaking=0)]
    listed = tmp_path / "list.txt"
    listed.write_text(f"# nightly\n{tmp_path}/f/*.csv\n\n{files[0]}\n")
    found = list(paths([str(tmp_path / "f"), f"@{listed}", files[1]]))
    assert sorted(found) == sorted(files)


def test_metadata_beside_recordings_is_no_recording(tmp_path):
    write(tmp_path / "a.csv")
    (tmp_path / "a.meta.json").write_text("{}")
    assert list(paths([f"{tmp_path}/*"])) == [str(tmp_path / "a.csv")]


def test_a_missing_name_stays_and_a_missing_list_is_an_error(tmp_path):
    assert list(paths([f"{tmp_path}/gone.csv"])) == [f"{tmp_path}/gone.csv"]
    with pytest.raises(ReadError, match="the list cannot be read"):
        list(paths([f"@{tmp_path}/gone.txt"]))


@pytest.mark.parametrize(
    ("scheme", "package"), [("gs", "gcsfs"), ("hdfs", "pyarrow"), ("abfs", "adlfs")]
)
def test_a_store_without_its_package_is_an_error_that_names_it(scheme, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    monkeypatch.setitem(sys.modules, f"{package}.fs", None)
    with pytest.raises(ReadError, match=f"reading it requires {package}") as refused:
        list(paths([f"{scheme}://bucket/*.csv"]))
    assert refused.value.remedy == f"pip install {package}"
    (found,) = judge_files([Task(path=f"{scheme}://bucket/run.csv")], How())
    assert found.error == f"reading it requires {package}"


def test_a_store_that_nobody_knows_is_an_error():
    with pytest.raises(ReadError, match="abc:// is not a kind of store"):
        list(paths(["abc://bucket/*.csv"]))
    (found,) = judge_files([Task(path="abc://bucket/run.csv")], How())
    assert found.error == "abc:// is not a kind of store"


def test_patterns_of_a_store_are_expanded():
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/a.csv", b"step,rss_mb\n1,2\n")
    store.pipe("/bucket/a.meta.json", b"{}")
    assert list(paths(["memory://bucket/*"])) == ["memory:///bucket/a.csv"]
    with pytest.raises(ReadError, match="no object matches"):
        list(paths(["memory://bucket/*.parquet"]))


def test_a_recording_in_a_store_is_judged(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    from memdiag import analyze_many

    fsspec = pytest.importorskip("fsspec")
    content = write(tmp_path / "a.csv", leak_mb=2).read_bytes()
    fsspec.filesystem("memory").pipe("/store/a.csv", content)
    with ThreadPoolExecutor(1) as executor:
        (found,) = analyze_many("memory://store/a.csv", executor=executor)
    assert found.verdict == "leak"
    assert found.path == "memory://store/a.csv"
