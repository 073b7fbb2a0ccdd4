import pytest
from fleets import fleet, write

from memdiag import ReadError
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
