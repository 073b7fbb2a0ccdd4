"""Names that lead to something else than a file with figures: no open waits, nothing is guessed."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import Ended, called
from terminals import MEMDIAG, PATIENCE_S, Terminal

from memdiag.recording.inputs import opening
from memdiag.recording.read import expand, read

FLAT = "step,rss_mb\n" + "".join(f"{n},{5000 + n % 3}\n" for n in range(60))
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do that")


def said(done: Ended) -> str:
    """All that was printed, in one line."""
    return " ".join((done.stdout + done.stderr).split())


def refused(*arguments: object) -> str:
    """What `memdiag analyze` says of what it cannot read."""
    done = called("analyze", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return said(done)


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for the writer of a pipe end at once."""
    monkeypatch.setattr(opening, "WRITER_WITHIN_S", 0.05)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A FIFO that nobody writes to."""
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    return path


@contextlib.contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """`memdiag analyze ARGUMENTS` while it runs."""
    pipe = subprocess.PIPE
    command = [*MEMDIAG, "analyze", *map(str, arguments)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def holds_open(process: subprocess.Popen[bytes], path: Path) -> bool:
    with contextlib.suppress(OSError):
        fds = Path(f"/proc/{process.pid}/fd").iterdir()
        return any(fd.readlink() == path for fd in fds)
    return False


@pytest.mark.usefixtures("quickly")
def test_a_pipe_that_nobody_writes_to_is_refused(fifo: Path) -> None:
    words = refused(fifo)
    assert "no process writes to this pipe (waited 0.05 s)" in words
    assert "hint: start the program that writes to it, or name a file" in words


def test_the_writer_of_a_pipe_may_come_later(fifo: Path) -> None:
    with started(fifo) as process:
        fifo.write_text(FLAT)  # waits until the pipe is opened for reading
        printed, _ = process.communicate(timeout=PATIENCE_S)
    assert b"STABLE" in printed


@pytest.mark.usefixtures("quickly")
def test_a_writer_may_take_its_time(fifo: Path) -> None:
    def write() -> None:
        with fifo.open("w") as file:
            time.sleep(4 * opening.WRITER_WITHIN_S)
            file.write(FLAT)

    writer = threading.Thread(target=write)
    writer.start()
    recording = read(str(fifo))
    writer.join()
    assert len(recording.series[0].y) == 60


def test_a_pipe_whose_writer_wrote_nothing_is_empty(fifo: Path) -> None:
    with started(fifo) as process:
        fifo.open("w").close()
        _, printed = process.communicate(timeout=PATIENCE_S)
    assert b"the file is empty" in printed


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_a_signal_ends_the_wait_for_a_writer(fifo: Path, number: int, code: int) -> None:
    with started(fifo) as process:
        while not holds_open(process, fifo):
            assert process.poll() is None
        process.send_signal(number)
        printed = process.communicate(timeout=1)
        assert (process.returncode, printed) == (code, (b"", b""))


@pytest.mark.parametrize("text", [FLAT, ""])
def test_a_pipe_of_the_shells_is_read(text: str) -> None:
    """As `memdiag analyze <(zcat log.gz)` makes it."""
    ours, theirs = os.pipe()
    os.write(theirs, text.encode())
    os.close(theirs)
    done = called("analyze", f"/dev/fd/{ours}")
    os.close(ours)
    assert ("STABLE" if text else "the file is empty") in done.stdout + done.stderr


def test_what_is_typed_is_read_up_to_one_end_of_input(tmp_path: Path) -> None:
    with Terminal([*MEMDIAG, "analyze", "-"], directory=tmp_path) as terminal:
        terminal.type(FLAT + "\x04")
        assert terminal.finish() == 0
    assert b"STABLE" in terminal.screen


def test_closed_standard_input_is_said() -> None:
    command = [*MEMDIAG, "analyze", "-"]
    shell = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    done = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "standard input is closed" in done.stderr


@pytest.mark.parametrize("kind", ["FIFO", "socket", "directory"])
@pytest.mark.parametrize("way", ["directory", "pattern"])
def test_what_is_no_file_among_recordings_is_left_out_and_said(
    tmp_path: Path, kind: str, way: str
) -> None:
    good, odd = tmp_path / "good.csv", tmp_path / "odd.csv"
    good.write_text(FLAT)
    make_odd(odd, kind)
    done = called("analyze", tmp_path if way == "directory" else tmp_path / "*.csv")
    assert done.returncode == 0
    assert "good.csv" in done.stdout
    assert "odd.csv" not in done.stdout
    assert f"{odd} was left out: it is a {kind}\n" in done.stderr


def make_odd(path: Path, kind: str) -> None:
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        bound(path)


def bound(path: Path) -> None:
    """A socket, by a short name: that of a socket may have 107 bytes."""
    place = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as ours:
        ours.bind(f"/proc/self/fd/{place}/{path.name}")
    os.close(place)


def test_a_pattern_without_any_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    words = refused(tmp_path / "*")
    assert "no regular file matches this pattern" in words
    assert "one was left out: it is a directory" in words


def test_a_pattern_through_all_folders_names_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "one" / "two").mkdir(parents=True)
    (tmp_path / "one" / "two" / "log.csv").write_text(FLAT)
    done = called("analyze", tmp_path / "**")
    assert (done.returncode, done.stderr) == (0, "")


def test_links_are_followed_and_broken_ones_are_errors(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(FLAT)
    (tmp_path / "link.csv").symlink_to("log.csv")
    assert called("analyze", tmp_path / "link.csv").returncode == 0
    (tmp_path / "dangling.csv").symlink_to("nowhere")
    (tmp_path / "circle.csv").symlink_to("circle.csv")
    words = refused(tmp_path)
    assert "no such file" in words
    assert "Too many levels of symbolic links" in words
    assert "2 not analyzed" in words


@pytest.mark.usefixtures("quickly")
def test_no_file_beside_the_recording_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FIFO in the place of its metadata, of settings, among MLflow's metrics, or of events."""
    native = tmp_path / "run.csv"
    rows = "".join(f"{n},{n},,7,main,{5_000_000 + n % 3}\n" for n in range(60))
    native.write_text("at_s,step,phase,pid,process,rss_bytes\n" + rows)
    os.mkfifo(tmp_path / "run.meta.json")
    os.mkfifo(tmp_path / "pyproject.toml")
    metrics = tmp_path / "1" / "metrics"
    metrics.mkdir(parents=True)
    lines = "".join(f"{1_700_000_000_000 + 1000 * n} {5000 + n % 3} {n}\n" for n in range(60))
    (metrics / "rss_mb").write_text(lines)
    os.mkfifo(metrics / "vram_mb")
    os.mkfifo(tmp_path / "events.out.tfevents.1")
    monkeypatch.chdir(tmp_path)
    done = called("analyze", ".")
    assert done.returncode == 0
    assert "run.csv" in done.stdout
    assert "1/metrics" in done.stdout
    assert "events.out.tfevents.1 was left out: it is a FIFO" in done.stderr


def test_settings_without_an_end_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log.csv").write_text(FLAT)
    (tmp_path / "pyproject.toml").touch()
    os.truncate(tmp_path / "pyproject.toml", 1 << 40)
    monkeypatch.chdir(tmp_path)
    assert "pyproject.toml has more than 4 MiB" in refused("log.csv")


def test_a_socket_is_refused(tmp_path: Path) -> None:
    bound(tmp_path / "log.csv")
    assert "the file is a socket, which cannot be read" in refused(tmp_path / "log.csv")


@as_root
def test_a_block_device_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    try:
        os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(7, 250))
        path.open("rb").close()
    except PermissionError:
        pytest.skip("no devices may be made or opened here")
    except OSError:
        pass  # nothing is behind it
    words = refused(path)
    assert "the file is a block device, which cannot be read" in words


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "the file is empty"),
        ("cut.csv.gz", gzip.compress(FLAT.encode(), mtime=0)[:40], "the gzip data is cut off"),
        ("begun.csv.gz", gzip.compress(FLAT.encode(), mtime=0)[:5], "the gzip data is cut off"),
        (
            "twice.gz",
            gzip.compress(gzip.compress(FLAT.encode(), mtime=0)),
            "the file is compressed twice",
        ),
        ("wrong.gz", b"\x1f\x8b" + b"wrong" * 9, "the file cannot be read"),
        ("more.gz", gzip.compress(FLAT.encode(), mtime=0) + b"more", "the file cannot be read"),
        ("line\nand\x1b[31m.csv", b"\x89PNG\r\n\x1a\n" + bytes(99), "the file is a PNG picture"),
        ("\udcff.csv", b"", "the file is empty"),
        ("parquet", b"PAR1" + bytes(50), "not a valid Parquet file"),
    ],
)
def test_damaged_files_and_odd_names_are_clear_errors(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    words = refused(path)
    assert message in words
    assert "\x1b" not in words
    assert words.startswith("memdiag: error: ")


@pytest.mark.parametrize("name", ["gone.csv", "gone/log.csv", "", "a" * 300, "log.csv/more", "[]"])
def test_names_of_nothing_are_clear_errors(tmp_path: Path, name: str) -> None:
    (tmp_path / "log.csv").write_text(FLAT)
    assert expand([name]) == [name]
    assert refused(name and f"{tmp_path}/{name}").startswith("memdiag: error: ")


_AS_ANOTHER = """
import os, sys
from memdiag.cli.app import main
sys.argv[1:], (good, name) = ["analyze", sys.argv[1]], sys.argv[1:]
main()  # imports what the other user may not
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
print("-" * 9)
sys.argv[2] = name
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("secret.csv", "no permission to read it"),
        ("closed", "no permission to list this directory"),
        ("closed/log.csv", "no permission to read it"),
        ("closed/*.csv", "no permission to read it"),
        ("closed/metrics", "no permission to read it"),
        ("open.csv", "STABLE"),
    ],
)
def test_what_may_not_be_read_is_a_clear_error(name: str, message: str) -> None:
    """As the user that we are or, where that is root, as another one who may hardly anything."""
    place = Path(tempfile.mkdtemp(prefix="memdiag-test-"))  # where the other user may look
    try:
        place.chmod(0o755)
        (place / "closed").mkdir()
        for log in ("open.csv", "secret.csv", "closed/log.csv"):
            # Larger than what is held of a file: the rest is read by another open.
            (place / log).write_text("step,rss_mb\n" + "".join(f"{n},5000\n" for n in range(9000)))
        (place / "secret.csv").chmod(0)
        (place / "closed").chmod(0)
        command = [sys.executable, "-c", _AS_ANOTHER, str(place / "open.csv"), str(place / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        (place / "closed").chmod(0o700)
        shutil.rmtree(place)
    assert message in " ".join((done.stdout + done.stderr).split("-" * 9 + "\n")[1].split())
    assert "Traceback" not in done.stderr
    assert done.returncode == (0 if message == "STABLE" else 2)


@pytest.mark.timeout(20)
def test_line_of_digits_without_end_is_no_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("rss_mb\n" + "17" * 40_000 + "\n1\n")
    assert called("analyze", tmp_path / "a.csv").returncode == 2


def test_line_that_begins_like_a_packed_file_is_text(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"\x1f\x8b\n\x28\xb5\x2f\xfd rss 5 MB\n" * 3)
    done = called("analyze", tmp_path / "a.log", "--format", "text")
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


def test_figures_beyond_all_measure_are_missing_without_a_warning(tmp_path: Path) -> None:
    rows = "".join(f"{n},1e30{n % 9}\n" for n in range(40))
    (tmp_path / "a.csv").write_text(f"step,rss_gb\n{rows}41,1e400\n")
    done = called("analyze", tmp_path / "a.csv")
    assert "Warning" not in done.stderr
    assert done.returncode in (0, 2, 3)
