import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from commandline import called
from fleets import write

from memdiag import analyze_many


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "nightly"
    folder.mkdir()
    for number in range(20):
        path = write(folder / f"{number:02}.csv", warmup=20 + number % 3 + 60 * (number >= 12))
        os.utime(path, (1e9 + 86400 * number,) * 2)
    with ThreadPoolExecutor(1) as executor:
        list(analyze_many(folder, executor=executor, results=tmp_path / "runs.sqlite"))
    return tmp_path / "runs.sqlite"


def test_a_change_names_its_first_run(results):
    ended = called("history", results, "--group-by", "directory")
    assert ended.returncode == 0
    said = " ".join(ended.stdout.split())
    assert "nightly: rss peak +300 MB since 2001-09-21: 12 runs before" in said
    assert "8 after" in said
    assert "12.csv" in said
    assert ended.stdout.splitlines()[-1].startswith("memdiag: 1 of 2 series changed (20 runs")


def test_the_page_has_a_chart_of_each_series_and_acts_on_no_name(results, tmp_path):
    file = tmp_path / "history.html"
    ended = called("history", results, "--group-by", "directory", "--html", file)
    assert ended.returncode == 0
    page = file.read_text()
    assert page.startswith("<!DOCTYPE html>\n<!-- memdiag report -->")
    assert page.count('<figure class="chart"') == 2
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    runs, median = data["charts"][0][0]["curves"]
    assert len(runs["x"]) == len(median["x"]) == 20
    assert [mark[0] for mark in runs["marks"]] == [13]
    assert data["document"]["runs"] == 20
    again = called("history", results, "--html", file, "-q")
    assert again.returncode == 0
    assert called("history", results, "--html", results).returncode == 2


def test_an_increase_may_fail(results):
    assert called("history", results, "--fail-on-increase", "-q").returncode == 1
    ended = called("history", results, "--json")
    (changed,) = [one for one in json.loads(ended.stdout)["trends"] if one["changes"]]
    assert changed["quantity"] == "peak"


def test_since_leaves_out_earlier_runs(results):
    ended = called("history", results, "--since", "2001-09-22")
    assert "2 series have too few runs" in " ".join(ended.stdout.split())
    assert called("history", results, "--since", "soon").returncode == 2


def test_other_files_are_refused(tmp_path):
    other = tmp_path / "a.sqlite"
    other.write_text("nothing")
    for path, said in (
        (other, "the file does not hold results of memdiag"),
        (tmp_path / "gone.parquet", "no such file"),
    ):
        ended = called("history", path)
        assert ended.returncode == 2
        assert f"{said} ({path})" in ended.stderr


def test_no_engine_is_loaded(results):
    called("history", results)
    assert "distributed" not in sys.modules
