"""No output overwrites an input, another output, or a file that memdiag did not write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from commandline import called
from terminals import MEMDIAG
from users import OTHER_UID, as_other_user, needs_two_users, other_python, with_memdiag

from memdiag.errors import OutputExists, UsageError
from memdiag.recording.native.atomic_file import RecordingFiles

LOG = "step,rss_mb\n" + "".join(f"{n},{1000 + n % 3}\n" for n in range(60))
REPORTS = ("--json-file", "--markdown", "--junitxml", "--html", "--png", "--svg")


@pytest.fixture
def log(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.csv"
    path.write_text(LOG)
    return path


def run(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MEMDIAG, *map(str, arguments)], capture_output=True, text=True, check=False, **more
    )


@pytest.mark.parametrize("option", REPORTS)
@pytest.mark.parametrize("way", ["itself", "link", "hard link", "other spelling", "sidecar"])
def test_report_is_not_written_over_an_input(option: str, way: str, log: Path) -> None:
    sidecar = log.with_name("a.meta.json")
    sidecar.write_text("{}")
    name = {"other spelling": "./x/../a.csv", "sidecar": "a.meta.json"}.get(way, "b")
    (log.parent / "x").mkdir()
    if way == "itself":
        name = "a.csv"
    elif way == "link":
        (log.parent / "b").symlink_to("a.csv")
    elif way == "hard link":
        os.link(log, log.parent / "b")
    done = called("analyze", "a.csv", option, name, "--force")
    assert done.returncode == 2
    assert "is the same file as" in done.stderr
    assert (log.read_text(), sidecar.read_text()) == (LOG, "{}")


def test_standard_input_is_an_input_too(log: Path) -> None:
    with log.open() as file:
        done = run("analyze", "-", "--json-file", "a.csv", "--force", stdin=file)
    assert done.returncode == 2
    assert log.read_text() == LOG


@pytest.mark.parametrize("option", REPORTS)
def test_file_that_memdiag_did_not_write_stays_without_force(option: str, log: Path) -> None:
    other = log.with_name("run1.csv")
    other.write_text(LOG)
    done = called("analyze", option, "run1.csv", "a.csv")
    assert done.returncode == 2
    assert "not a memdiag report" in done.stderr
    assert "--force" in done.stderr
    assert other.read_text() == LOG
    assert called("analyze", option, "run1.csv", "a.csv", "--force").returncode == 0
    assert other.read_bytes() != LOG.encode()


@pytest.mark.parametrize("option", REPORTS)
def test_memdiag_report_and_empty_file_are_replaced(option: str, log: Path) -> None:
    report = log.with_name("report")
    report.touch()
    for _ in range(2):
        assert called("analyze", option, "report", "a.csv").returncode == 0
        first = report.read_bytes()
        assert first
    assert report.read_bytes() == first


def test_comparison_is_checked_alike(log: Path) -> None:
    other = log.with_name("b.csv")
    other.write_text(LOG)
    done = called("compare", "a.csv", "b.csv", "--json-file", "b.csv", "--force")
    assert (done.returncode, other.read_text()) == (2, LOG)
    for _ in range(2):
        assert called("compare", "a.csv", "b.csv", "--json-file", "c.json").returncode in (0, 3)
        for option, name in (("--html", "c.html"), ("--svg", "c.svg")):
            assert called("compare", "a.csv", "b.csv", option, name).returncode in (0, 3)
    assert "effect" in json.loads(log.with_name("c.json").read_text())
    assert "memdiag report" in log.with_name("c.html").read_text()
    assert "After minus before" in log.with_name("c.svg").read_text()


def test_markdown_embeds_the_picture_that_is_written_with_it(log: Path) -> None:
    (log.parent / "pictures").mkdir()
    both = ("--markdown", "r.md", "--svg", "pictures/a b.svg")
    assert called("analyze", "a.csv", *both).returncode == 0
    assert "](pictures/a%20b.svg)" in log.with_name("r.md").read_text()


def test_style_of_a_picture_is_checked_before_a_command_starts(log: Path) -> None:
    options = ("--png", "a.png", "--picture-style", "huge", "--", "touch", "started")
    done = called("run", *options)
    assert done.returncode == 2
    assert "'huge' for --picture-style" in done.stderr
    assert not log.with_name("started").exists()


def test_two_outputs_are_two_files(log: Path) -> None:
    done = called("analyze", "a.csv", "--json-file", "r", "--markdown", "./r")
    assert done.returncode == 2
    assert "--markdown r is the same file as --json-file" in done.stderr
    assert not log.with_name("r").exists()


def test_report_may_go_to_a_device_and_to_standard_output(log: Path) -> None:
    both = ("--json-file", os.devnull, "--markdown", os.devnull)
    assert called("analyze", "a.csv", *both).returncode == 0
    done = run("analyze", "a.csv", "--json-file", "/dev/stdout")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('{\n  "schema_version"')


@pytest.mark.timeout(20)
def test_fifo_without_a_reader_is_refused_at_once(log: Path) -> None:
    os.mkfifo(log.with_name("pipe"))
    done = called("analyze", "a.csv", "--json-file", "pipe")
    assert done.returncode == 2
    assert "nobody reads from this FIFO" in done.stderr


def test_fifo_with_a_reader_gets_the_report(log: Path) -> None:
    os.mkfifo(log.with_name("pipe"))
    with subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE) as reader:
        fd = os.open("pipe", os.O_WRONLY)  # the reader is there
        try:
            assert run("analyze", "a.csv", "--json-file", "pipe").returncode == 0
        finally:
            os.close(fd)
        assert json.loads(reader.communicate()[0])["verdict"] == "stable"


@pytest.mark.parametrize(
    "arguments",
    [
        ("-o", "x.csv", "--json-file", "x.csv"),
        ("-o", "x.csv", "--json-file", "x.meta.json"),
        ("-o", "x.parquet", "--json-file", "x.csv"),
        ("-o", "train.py", "--force"),
        ("-o", "x.csv", "--json-file", "train.py", "--force"),
        ("-o", "data.csv", "--force"),
        ("-o", "x.csv", "--json-file", "no/such/place.json"),
        ("-o", "x.csv", "--json-file", "/proc/x.json"),
        ("-o", "x.csv", "--markdown", "."),
        ("-o", "/proc/x.csv"),
        ("-o", "fifo.csv"),
        ("-o", "fifo.csv", "--force"),
    ],
)
def test_command_is_not_started_if_an_output_cannot_be_written(arguments, log: Path) -> None:
    log.with_name("train.py").write_text("print('hello')")
    log.with_name("data.csv").write_text(LOG)
    os.mkfifo(log.with_name("fifo.csv"))
    before = sorted(path.name for path in log.parent.iterdir())
    done = run("run", *arguments, "--", sys.executable, "train.py", "data.csv")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    assert log.with_name("train.py").read_text() == "print('hello')"
    assert log.with_name("data.csv").read_text() == LOG
    assert sorted(path.name for path in log.parent.iterdir()) == before


def test_missing_command_leaves_no_recording(log: Path) -> None:
    recording = log.with_name("x.csv")
    recording.write_text("of yesterday")
    done = run("run", "-o", "x.csv", "--force", "--", "no-such-command")
    assert (done.returncode, recording.read_text()) == (127, "of yesterday")
    assert run("run", "-o", "y.csv", "--", "no-such-command").returncode == 127
    assert sorted(path.name for path in log.parent.iterdir()) == ["a.csv", "x.csv"]


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_second_recording_of_the_same_name_is_refused_and_starts_nothing(force, log) -> None:
    command = ["run", *force, "-q", "-o", "x.csv", "--", "sh", "-c", "echo ready; read _; echo end"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*MEMDIAG, *command], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "ready\n"
        second = run("run", *force, "-o", "x.csv", "--", "echo", "started", timeout=60)
        assert (second.returncode, second.stdout) == (2, "")
        out, err = first.communicate("\n", timeout=60)
    assert out == "end\n"
    assert err.rstrip().endswith(" x.csv")
    lines = log.with_name("x.csv").read_text().splitlines()
    assert len({line.count(",") for line in lines}) == 1


def test_recordings_that_are_made_at_once_have_one_owner(tmp_path: Path) -> None:
    for force in (False, True):
        path = tmp_path / f"{force}.csv"
        first = RecordingFiles(path, force=force)
        first.begin()
        with pytest.raises(OutputExists):
            RecordingFiles(path, force=force)
        assert first.replace_rows([b"new\n"]) == 4
        with pytest.raises(OutputExists):
            RecordingFiles(path, force=force)
        assert first.is_there()
        first.close()
        second = RecordingFiles(path, force=True)
        assert path.read_bytes() == b"new\n", "nothing is replaced before there is something new"
        second.discard()


def test_parquet_that_came_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    files = RecordingFiles(tmp_path / "x.parquet", force=False)
    (tmp_path / "x.parquet").write_text("of somebody else")
    with pytest.raises(FileExistsError):
        files.to_parquet(lambda csv, parquet: parquet.write_bytes(b"PAR1"))
    assert (tmp_path / "x.parquet").read_text() == "of somebody else"
    assert files.written == tmp_path / "x.csv"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.csv", "x.parquet"]
    files.close()


def test_recording_that_was_replaced_is_still_the_one_that_is_judged(log: Path) -> None:
    program = "mv x.csv moved.csv; printf 'step,rss_mb\\n1,2\\n' > x.csv; sleep 0.3"
    done = run("run", "-o", "x.csv", "--", "sh", "-c", program)
    assert "the recording was removed or replaced meanwhile" in done.stderr
    assert log.with_name("x.csv").read_text() == "step,rss_mb\n1,2\n"


def test_name_of_a_recording_says_what_it_is(log: Path) -> None:
    for name in ("train.py", "run", "run.csv.gz", "run.json"):
        with pytest.raises(UsageError, match=r"must end in \.csv or \.parquet"):
            RecordingFiles(log.with_name(name), force=True)


@needs_two_users
def test_links_of_another_user_are_not_written_through(log: Path, request) -> None:
    """In a directory where everybody may make files, as /tmp is."""
    shared = Path(tempfile.mkdtemp(prefix="memdiag-test-", dir="/tmp"))
    shared.chmod(0o1777)
    request.addfinalizer(lambda: shutil.rmtree(shared))
    canary = log.parent / "canary"
    canary.write_text("mine")
    plant = (
        "import os, sys\nos.chdir(sys.argv[1])\n"
        "os.symlink(sys.argv[2], 'r.json')\n"
        "os.symlink('nowhere', 'n.json')\n"
        "for pid in range(int(sys.argv[3]), int(sys.argv[3]) + 500):\n"
        "    for name in ('x.meta.json', 'x.csv', 'y.parquet'):\n"
        "        os.symlink(sys.argv[2], f'.{name}.{pid}.tmp')\n"
    )
    with subprocess.Popen(["true"]) as latest:
        pid = latest.pid
    command = [other_python(), "-c", plant, str(shared), str(canary), str(pid)]
    subprocess.run(command, check=True, **as_other_user(env=with_memdiag()))
    for name in ("r.json", "n.json"):
        done = called("analyze", log, "--json-file", shared / name, "--force")
        assert done.returncode == 2
        assert "a link of another user" in done.stderr
    for name in ("x.csv", "y.parquet"):
        assert run("run", "-q", "-o", shared / name, "--", "true").returncode in (0, 3)
        assert (shared / name).stat().st_uid != OTHER_UID
    assert canary.read_text() == "mine"


def test_recording_goes_to_a_private_directory_if_this_one_is_not_writable(tmp_path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'cd "{gone}"; rmdir "{gone}"; exec "$@"'
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    command = ("sh", "-c", "echo hello; sleep 0.5; exit 9")
    done = subprocess.run(
        ["sh", "-c", script, "sh", *MEMDIAG, "run", "--interval", "10ms", "--", *command],
        capture_output=True,
        text=True,
        env=environ,
        check=False,
    )
    assert (done.returncode, done.stdout) == (9, "hello\n")
    assert "Traceback" not in done.stderr
    (recording,) = tmp_path.glob("memdiag-*/runs/*/recording.csv")
    assert recording.parents[2].stat().st_mode & 0o777 == 0o700
