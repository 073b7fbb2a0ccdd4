"""`list`, `report`, `compare` and `clean` with runs that `memdiag run` has kept."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import called
from terminals import MEMDIAG, Terminal

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
PROGRAM = """
import memdiag, sys, time
kept = []
for step in range(20):
    if "leaky" in sys.argv:
        kept.append(bytearray(1_000_000))
    memdiag.step(step)
    time.sleep(0.02)
"""
# Long enough for some samples.
MEASURED = ("--interval", "10ms", "--", "sleep", "0.5")


def memdiag(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MEMDIAG, *arguments],
        cwd=cwd,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which two runs were recorded."""
    directory = tmp_path_factory.mktemp("project")
    (directory / "fit.py").write_text(PROGRAM)
    for arguments in ((), ("leaky",)):
        options = ("--interval", "0.05", "--fail-on", "never")
        done = memdiag("run", *options, "--", sys.executable, "fit.py", *arguments, cwd=directory)
        assert done.returncode == 0, done.stderr
    return directory


@pytest.fixture
def kept(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the working directory."""
    shutil.copytree(project, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def ids(directory: Path) -> list[str]:
    """The names of the runs, the newest first."""
    return sorted((path.name for path in (directory / ".memdiag/runs").iterdir()), reverse=True)


def test_list_shows_runs_newest_first(kept: Path) -> None:
    shown = called("list", "--width", "100").stdout.splitlines()
    assert [line.split()[0] for line in shown[1:]] == ids(kept)
    assert shown[0].split() == ["run", "when", "command", "verdict", "growth", "size"]
    assert re.search(r" \d+ (s|min) ago ", shown[1])
    assert "fit.py leaky" in called("list", "--width", "120").stdout.splitlines()[1]
    narrow = called("list", "--width", "80").stdout.splitlines()
    assert all(len(line) <= 80 for line in narrow)
    assert [line.split()[0] for line in narrow[1:]] == ids(kept)


def test_list_as_json_has_what_the_report_found(kept: Path) -> None:
    newest, oldest = json.loads(called("list", "--json").stdout)["runs"]
    report = json.loads((kept / newest["recording"]).with_name("report.json").read_text())
    found = report["recordings"][0]
    assert newest["verdict"] == report["verdict"]
    assert newest["command"][1:] == ["fit.py", "leaky"]
    if newest["growth"] is not None:
        assert newest["growth"]["unit"] == "bytes"
        assert newest["growth"]["per_x"] == found["series"][found["decided_by"]]["growth_per_x"]
    assert newest["began_at"] >= oldest["began_at"]
    assert newest["size_bytes"] > 1000
    assert newest["is_recording"] is False


def test_list_judges_a_run_whose_memdiag_was_killed(kept: Path) -> None:
    report = kept / ".memdiag/runs" / ids(kept)[0] / "report.json"
    before = json.loads(report.read_text())
    report.unlink()
    (newest, _) = json.loads(called("list", "--json").stdout)["runs"]
    assert newest["verdict"] == before["verdict"]
    assert json.loads(report.read_text())["recordings"] == before["recordings"]
    report.unlink()
    report.with_name("recording.csv").write_text("")
    assert "not judged" in called("list").stdout
    assert not report.exists()


def test_list_without_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = called("list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no runs in .memdiag/runs" in done.stderr
    assert json.loads(called("list", "--json").stdout)["runs"] == []
    assert called("report").returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_list_names_recordings_of_older_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("memdiag-20260101-120000-77.csv", "memdiag-20260101-120000-77.meta.json", "a.csv"):
        (tmp_path / name).write_bytes((RUNS / "vision_run2.csv").read_bytes())
    shown = called("list").stderr
    assert "memdiag: 1 older recording is in this directory: memdiag analyze 'memdiag-*" in shown
    assert "WARMUP" in called("analyze", "memdiag-*.csv").stdout


def test_report_shows_the_run_as_its_end_did(kept: Path) -> None:
    newest, oldest = ids(kept)
    last = called("report")
    assert last.returncode == 0
    assert called("report", newest).stdout == called("report", "last").stdout == last.stdout
    recording = f".memdiag/runs/{oldest}/recording.csv"
    assert called("report", recording).stdout == called("report", "last~1").stdout
    assert called("analyze", "last").stdout == last.stdout


def test_a_file_of_that_name_comes_first(kept: Path) -> None:
    shutil.copy(RUNS / "burn_hybrid.csv", "last")
    assert "VRAM" in called("report", "last").stdout


def test_report_of_one_process_and_metric_has_the_verdict_of_the_whole(kept: Path) -> None:
    document = json.loads((kept / ".memdiag/runs" / ids(kept)[0] / "report.json").read_text())
    done = called("report", "-v", "--series", "rss", "--process", "main", "--width", "100")
    (row,) = [line for line in done.stdout.splitlines() if line.startswith(" RSS      main")]
    series = [
        one
        for one in document["recordings"][0]["series"]
        if one["metric"] == "rss_bytes" and one["process"] == "main"
    ]
    assert done.returncode == 0
    assert len(series) == 1
    assert f"{series[0]['peak_value'] / 1e6:.1f} MB" in row
    assert "malloc" not in done.stdout.partition("series ")[2]
    wrong = called("report", "--series", "nosuch")
    assert wrong.returncode == 2
    assert "no such series" in wrong.stderr
    assert "rss_bytes main" in wrong.stderr


def test_report_of_some_steps_judges_these_alone(kept: Path) -> None:
    done = called("report", "--from-step", "5", "--to-step", "15")
    assert done.returncode == 0
    assert "only the samples from step 5 to step 15 were judged" in " ".join(done.stdout.split())
    beyond = called("report", "--from-step", "500")
    assert beyond.returncode == 2
    assert "its steps are 0 to" in beyond.stderr


def test_report_is_written_to_files(kept: Path) -> None:
    done = called("report", "last", "-o", "r.html", "--series", "rss", "--from-step", "2")
    assert (done.returncode, done.stdout) == (0, "")
    assert "wrote r.html" in done.stderr
    assert "only the samples from step 2 were judged" in (kept / "r.html").read_text()
    assert called("report", "-o", "r.json").returncode == 0
    document = json.loads((kept / "r.json").read_text())
    assert document["recordings"][0]["source"].endswith(f"{ids(kept)[0]}/recording.csv")
    assert json.loads(called("report", "--json").stdout) == document
    (kept / "mine.html").write_text("precious")
    for name in ("mine.html", "r.txt", "r"):
        assert called("report", "-o", name).returncode == 2
    assert (kept / "mine.html").read_text() == "precious"
    assert called("report", "-o", "mine.html", "--force").returncode == 0


def test_compare_takes_names_of_runs(kept: Path) -> None:
    done = called("compare", "last~1", "last", "--json")
    compared = json.loads(done.stdout)
    newest, oldest = ids(kept)
    assert compared["base"] == [f".memdiag/runs/{oldest}/recording.csv"]
    assert compared["candidate"] == [f".memdiag/runs/{newest}/recording.csv"]
    missing = called("compare", "last~2", "last")
    assert missing.returncode == 2
    assert "there are only 2 runs" in missing.stderr


def test_clean_removes_only_what_is_asked_for(kept: Path) -> None:
    newest, oldest = ids(kept)
    assert "nothing to remove" in called("clean", "--yes").stderr
    assert "nothing to remove" in called("clean", "--keep", "0", "--older", "1d", "--yes").stderr
    assert ids(kept) == [newest, oldest]
    done = called("clean", "--keep", "1", "--yes")
    assert (done.returncode, ids(kept)) == (0, [newest])
    assert "removed 1 run" in done.stderr


def test_clean_leaves_a_run_with_other_files_and_says_so(kept: Path) -> None:
    _, oldest = ids(kept)
    (kept / ".memdiag/runs" / oldest / "model.pt").write_text("weights")
    done = called("clean", "--keep", "0", "--yes")
    assert ids(kept) == [oldest]
    assert f"{oldest} stays" in done.stderr
    assert "model.pt" in done.stderr
    assert len(list((kept / ".memdiag/runs" / oldest).iterdir())) == 4


def test_hostile_names_and_reports_are_harmless(kept: Path) -> None:
    runs = kept / ".memdiag/runs"
    newest = runs / ids(kept)[0]
    evil = "20990101-000000-\x1b[31m\nx-1"
    shutil.copytree(newest, runs / evil)
    sidecar = json.loads((newest / "recording.meta.json").read_text())
    sidecar["about"]["command"] = ["\x1b]0;title\x07", {"a": 1}]
    (runs / evil / "recording.meta.json").write_text(json.dumps(sidecar, indent=1))
    (runs / evil / "\x1b[2J").touch()
    (runs / "00010101-000000-x-1").mkdir()
    reports = ('{"verdict": []}', '{"verdict": "leak", "recordings": 7}', "[" * 100_000)
    for number, text in enumerate(reports):
        (runs / f"2098010{number + 1}-000000-x-1").mkdir()
        (runs / f"2098010{number + 1}-000000-x-1" / "report.json").write_text(text)
    for command in ("list", "list --json", "report", "clean --keep 0 --yes"):
        done = called(*command.split())
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
    assert evil in ids(kept), "it has a file that is not memdiag's"


@pytest.mark.parametrize(("answer", "left"), [("y", 0), ("n", 2), ("", 2)])
def test_clean_asks_on_a_terminal(kept: Path, answer: str, left: int) -> None:
    with Terminal([*MEMDIAG, "clean", "--keep", "0"], directory=kept) as terminal:
        terminal.until(r"Remove 2 runs.*\[y/N\]")
        terminal.type(f"{answer}\n")
        assert terminal.finish() == 0
    assert len(ids(kept)) == left


def test_clean_asks_nobody_without_a_terminal(kept: Path) -> None:
    done = memdiag("clean", "--keep", "0", cwd=kept)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert len(ids(kept)) == 2


def test_place_can_be_moved(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.memdiag]\ndir = "kept/here"\n')
    command = ("run", "-q", "--inconclusive", "pass", *MEASURED)
    assert memdiag(*command, cwd=tmp_path).returncode == 0
    assert memdiag(*command, cwd=tmp_path, MEMDIAG_DIR=str(tmp_path / "else")).returncode == 0
    for place in ("kept/here", "else"):
        (run,) = (tmp_path / place / "runs").iterdir()
        assert "-sleep-" in run.name
    listed = json.loads(memdiag("list", "--json", cwd=tmp_path).stdout)["runs"]
    assert [run["recording"].startswith("kept/here/runs/") for run in listed] == [True]
    assert not (tmp_path / ".memdiag").exists()


def test_place_that_was_named_and_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = memdiag("run", "--", "echo", "started", cwd=tmp_path, MEMDIAG_DIR="file")
    assert (done.returncode, done.stdout) == (2, "")
    assert "MEMDIAG_DIR" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a link of another user's")
def test_place_that_was_named_is_no_link_of_another_users(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    link = tmp_path / "kept"
    link.symlink_to("mine")
    command = ("run", "-q", "--inconclusive", "pass", "--", "true")
    assert memdiag(*command, cwd=tmp_path, MEMDIAG_DIR="kept").returncode == 0
    shutil.rmtree(tmp_path / "mine/runs")
    os.lchown(link, 65534, 65534)
    done = memdiag(*command, cwd=tmp_path, MEMDIAG_DIR="kept")
    assert done.returncode == 2
    assert "it belongs to another user" in done.stderr or "cannot keep runs" in done.stderr
    assert list((tmp_path / "mine").iterdir()) == []


def test_program_runs_though_the_default_place_is_taken(tmp_path: Path) -> None:
    (tmp_path / ".memdiag").symlink_to("elsewhere")
    (tmp_path / "tmp").mkdir()
    done = memdiag("run", "-q", *MEASURED, cwd=tmp_path, TMPDIR=str(tmp_path / "tmp"))
    assert done.returncode in (0, 3)
    assert not (tmp_path / "elsewhere").exists()
    assert len([*(tmp_path / "tmp").glob("memdiag-*/runs/*/recording.csv")]) == 1


@pytest.mark.parametrize("command", [("true",), ("sh", "-c", "exit 3")])
def test_run_that_ended_before_it_was_measured_is_not_kept(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    done = memdiag("run", "--json-file", "r.json", "--", *command, cwd=tmp_path)
    assert done.returncode == 3
    last = done.stderr.splitlines()[-1]
    assert last.startswith("memdiag: ")
    assert "INCONCLUSIVE" in last
    assert ".memdiag" not in done.stderr
    assert "removed" not in done.stderr
    assert [*(tmp_path / ".memdiag" / "runs").iterdir()] == []
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "inconclusive"


def test_output_stays_where_it_was_asked_for(tmp_path: Path) -> None:
    memdiag("run", "-q", "-o", "r.csv", "--", "true", cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "r.meta.json"]
