"""How much is read of what can be read only once, and what is left when that is cut short."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl
import pytest
from commandline import called
from terminals import MEMDIAG

from memdiag.recording.inputs import opening, source
from memdiag.recording.inputs import spool as spooling
from memdiag.recording.inputs.spool import HELD_BYTES, Spool, spooled
from memdiag.recording.read import read
from memdiag.recording.read_options import ReadOptions
from memdiag.values.measurements import Series

ROWS = "".join(f"{n},{5000 + n % 3}\n" for n in range(60))
FLAT = "step,rss_mb\n" + ROWS
ZEROS = bytes(1 << 16)
# A piece that a pipe takes at once, and of which none is cut in the middle of a line.
LINES = b"1000,5000\n" * 6000
HEADER = b"step,rss_mb\n"
LIMIT = ("--max-input", "5MB")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="of Linux's files without a name")

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def rooms(tmp_path: Path) -> Path:
    """Where temporary files go."""
    place = tmp_path / "rooms"
    place.mkdir()
    return place


@pytest.fixture
def start(rooms: Path) -> Iterator[Start]:
    """Starts `memdiag analyze ARGUMENTS`, with a pipe on its standard input."""
    running = []

    def started(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*MEMDIAG, "analyze", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "TMPDIR": str(rooms), "COLUMNS": "300"},
            **options,  # type: ignore[call-overload]
        )
        running.append(process)
        return process

    yield started
    for process in running:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def fill(pipe: BinaryIO | None, pieces: Iterator[bytes] | list[bytes]) -> None:
    """Write, as long as somebody reads."""
    assert pipe is not None
    with contextlib.suppress(BrokenPipeError):
        for piece in pieces:
            pipe.write(piece)


def words(process: subprocess.Popen[bytes]) -> str:
    """What it prints until it ends, in one line. Its standard input stays open."""
    assert process.stdout is not None
    assert process.stderr is not None
    printed = process.stdout.read() + process.stderr.read()
    process.wait(20)
    return " ".join(printed.decode().split())


def test_an_endless_pipe_is_read_up_to_the_limit(start: Start) -> None:
    process = start("-", *LIMIT)
    fill(process.stdin, repeat(LINES))
    said = words(process)
    assert process.returncode == 2
    assert "the file holds more than 5 MB, the limit of --max-input" in said
    assert "hint: --max-input 20GB, or shorten it" in said


def test_the_limit_is_8_gb_where_nothing_is_said() -> None:
    assert ReadOptions().max_input_bytes == 8_000_000_000
    assert "[default: 8GB]" in called("help", "analyze").stdout
    assert "[default: 8GB]" in called("help", "compare").stdout


@pytest.mark.parametrize("size", ["0", "-5MB", "much"])
def test_a_limit_that_is_no_size_is_a_usage_error(tmp_path: Path, size: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text(FLAT)
    done = called("analyze", log, f"--max-input={size}")
    assert done.returncode == 2
    assert f"invalid value {size!r} for --max-input" in done.stderr


def test_the_limit_holds_for_compare(tmp_path: Path) -> None:
    log, packed = tmp_path / "log.csv", tmp_path / "log.csv.gz"
    log.write_text(FLAT)
    packed.write_bytes(gzip.compress(FLAT.encode() + LINES * 9))
    done = called("compare", log, packed, "--max-input", "500KB")
    assert done.returncode == 2
    assert "the file decompresses to more than 500 KB" in done.stderr
    assert called("compare", log, packed, "--max-input", "1MB").returncode != 2


@pytest.mark.parametrize("packed", [False, True])
def test_binary_input_is_refused_from_its_first_64_kib(start: Start, packed: bool) -> None:
    """Though the pipe stays open, and nobody could know how much is still to come."""
    process = start("-")
    fill(process.stdin, [gzip.compress(bytes(32 << 20), 1) if packed else ZEROS])
    assert "the file is binary, not text" in words(process)
    assert process.returncode == 2


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_a_device_without_an_end_is_refused(rooms: Path) -> None:
    done = called("analyze", "/dev/zero")
    assert (done.returncode, "the file is binary, not text" in done.stderr) == (2, True)


def packed_lines(path: Path) -> None:
    path.write_bytes(gzip.compress(HEADER + LINES * 100, 1))


def packed_by_zstd(path: Path) -> None:
    block = ((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"x"  # 128 KiB of one letter
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x38" + block * 50 + b"\x09\0\0\n")


def in_utf16(path: Path) -> None:
    path.write_text(FLAT + "1,5000\n" * 700_000, encoding="utf-16")


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps({"device_traces": [], "more": "x" * 6_000_000}))


@pytest.mark.parametrize("write", [packed_lines, packed_by_zstd, in_utf16, pickled])
def test_what_is_unpacked_or_read_into_memory_has_a_limit(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    path = tmp_path / "log"
    write(path)
    done = called("analyze", path, *LIMIT)
    assert done.returncode == 2
    assert "more than 5 MB, the limit of --max-input" in " ".join(done.stderr.split())
    assert "--max-input 20GB" in done.stderr


@pytest.mark.parametrize("name", ["log.csv", "train.log", "log.parquet"])
def test_plain_files_are_read_in_place_whatever_their_size(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    rows = [f"{n},{5000 + n % 3}" for n in range(30_000)]
    if name == "train.log":
        rows = [f"step {n} | rss: {5000 + n % 3} MB | -- " for n in range(30_000)]
    if name == "log.parquet":
        pl.DataFrame({"step": range(300_000), "rss_mb": range(300_000)}).write_parquet(path)
    else:
        path.write_text("step,rss_mb\n" * (name == "log.csv") + "\n".join(rows) + "\n")
    assert path.stat().st_size > 200_000
    recording = read(str(path), ReadOptions(max_input_bytes=100_000))
    assert len(recording.series[0].y) >= 30_000


def test_a_packed_file_is_not_read_into_memory_whole(tmp_path: Path) -> None:
    """Of 100 GB, nearly all of them zeros behind the packed data, which take no room on disk."""
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(FLAT.encode()))
    os.truncate(path, 100 * 10**9)
    done = called("analyze", path, *LIMIT)
    assert (done.returncode, "more than 5 MB" in done.stderr) == (2, True)


def test_packed_members_and_the_zeros_behind_them_are_one_text(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    half = FLAT.index("30,")
    parts = FLAT[:half].encode(), FLAT[half:].encode()
    path.write_bytes(gzip.compress(parts[0]) + bytes(100) + gzip.compress(parts[1]) + bytes(99999))
    assert len(read(str(path)).series[0].y) == 60


def test_a_packed_pipe_is_unpacked_while_it_is_read(start: Start) -> None:
    process = start("-")
    process.stdin.write(gzip.compress(FLAT.encode()))  # type: ignore[union-attr]
    process.stdin.close()  # type: ignore[union-attr]
    assert "STABLE" in words(process)


def test_utf16_is_decoded_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "step,rss_mb,µ\n" + "".join(f"{n},{5000 + n},é€\n" for n in range(20_000)), "utf-16"
    )
    series = read(str(path)).series[0]
    assert series.y.tolist() == [(5000 + n) * 1e6 for n in range(20_000)]


EXPORTS = Path(__file__).parents[2] / "fixtures" / "exports"
EVENTS = "events.out.tfevents.1700000000.tensorboard"


def as_parquet(path: Path) -> None:
    pl.DataFrame({"step": range(300), "rss_mb": range(300)}).write_parquet(path)


def as_events(path: Path) -> None:
    path.write_bytes((EXPORTS / EVENTS).read_bytes())


def as_snapshot(path: Path) -> None:
    events = [{"action": "alloc", "size": n, "time_us": n} for n in range(1, 99)]
    segments = [{"device": 0, "allocated_size": 5000, "total_size": 9000}]
    path.write_bytes(pickle.dumps({"segments": segments, "device_traces": [events]}))


def as_log(path: Path) -> None:
    path.write_text("".join(f"step {n} | rss: {5000 + n} MB\n" for n in range(300)))


@pytest.mark.parametrize("write", [as_parquet, as_events, as_snapshot, as_log])
def test_a_copy_on_disk_reads_like_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, write: Callable[[Path], None]
) -> None:
    plain, packed = tmp_path / "log", tmp_path / "log.gz"
    write(plain)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    found = [figures(series) for series in read(str(plain)).series]
    monkeypatch.setattr(spooling, "HELD_BYTES", 100)
    monkeypatch.setattr(source, "HEAD_BYTES", 100)
    assert [figures(series) for series in read(str(packed)).series] == found


def figures(series: Series) -> tuple[str, str, list[float], list[float]]:
    return series.metric, series.process, np.nan_to_num(series.x).tolist(), series.y.tolist()


def spooling_now(process: subprocess.Popen[bytes], rooms: Path) -> list[str]:
    """Feed it until it keeps a file; the files without a name that it holds open there."""
    fill(process.stdin, [HEADER, *repeat(LINES, (HELD_BYTES >> 16) + 120)])
    links = Path(f"/proc/{process.pid}/fd").iterdir()
    return [held for link in links if (held := str(link.readlink())).startswith(str(rooms))]


@on_linux
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGKILL, -9)]
)
def test_a_signal_while_spooling_ends_it_and_leaves_nothing(
    start: Start, rooms: Path, number: int, code: int
) -> None:
    process = start("-")
    held = spooling_now(process, rooms)
    assert [target.endswith("(deleted)") for target in held] == [True]
    assert list(rooms.iterdir()) == []
    process.send_signal(number)
    process.wait(1)
    assert process.returncode == code
    assert words(process) == ""
    assert list(rooms.iterdir()) == []


@on_linux
def test_a_large_pipe_is_judged_from_a_file_without_a_name(start: Start, rooms: Path) -> None:
    process = start("-")
    more = b"x" * 1500
    fill(
        process.stdin,
        [b"step,rss_mb,text\n", *(b"%d,5000,%s\n" % (n, more) for n in range(24_000))],
    )
    process.stdin.close()  # type: ignore[union-attr]
    assert "STABLE" in words(process)
    assert list(rooms.iterdir()) == []


@pytest.mark.parametrize("most_mb", [34, 0])
def test_a_full_disk_while_spooling_is_said(start: Start, rooms: Path, most_mb: int) -> None:
    def small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_mb << 20, most_mb << 20))

    process = start("-", preexec_fn=small_files_only)
    fill(process.stdin, repeat(LINES))
    said = words(process)
    assert process.returncode == 2
    if most_mb:
        assert f"there is no space for a copy in {rooms}: it takes 35." in said
    else:
        assert "the file cannot be copied to the temporary directory: No usable temporary" in said
    assert "hint: set TMPDIR to a directory with more space (at most 8 GB, by --max-input)" in said
    assert "Traceback" not in said


def test_without_proc_the_file_has_a_name_and_is_gone_when_it_is_closed(
    monkeypatch: pytest.MonkeyPatch, rooms: Path
) -> None:
    monkeypatch.setattr(spooling.tempfile, "tempdir", str(rooms))
    monkeypatch.setattr(spooling, "place_of", lambda _: None)
    monkeypatch.setattr(source, "place_of", lambda _: None)
    monkeypatch.setattr(spooling, "HELD_BYTES", 1000)
    text = FLAT.encode() * 300
    stream = spooling.Stream(io.BytesIO(text))
    spool = spooled(stream, at_most_bytes=len(text))
    assert isinstance(spool, Spool)
    assert spool.path.read_bytes() == text
    spool.file.close()
    assert list(rooms.iterdir()) == []
    path = rooms / "log.csv.gz"
    path.write_bytes(gzip.compress(HEADER + ROWS.encode() * 900))
    assert len(read(str(path)).series[0].y) == 54_000
    assert list(rooms.iterdir()) == [path]


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_files_are_closed_when_they_were_read_or_could_not_be(tmp_path: Path) -> None:
    good, torn, bad = tmp_path / "good.csv", tmp_path / "cut.gz", tmp_path / "bad.parquet"
    good.write_text("step,rss_mb\n" + ROWS * 900)
    torn.write_bytes(gzip.compress(FLAT.encode())[:-9])
    bad.write_bytes(b"PAR1" + bytes(100_000))
    before = open_files()
    for _ in range(5):
        done = called("analyze", good, torn, bad)
        assert done.returncode == 2
    assert open_files() == before


def test_the_head_of_a_stream_is_still_to_be_read() -> None:
    text = bytes(range(256)) * 1000
    stream = spooling.Stream(io.BytesIO(text), begun=b"begun")
    assert stream.head() == (b"begun" + text)[: opening.HEAD_BYTES]
    assert stream.head()[:5] == b"begun"
    assert stream.read(3) + stream.read(100_000) + stream.read(1 << 20) == b"begun" + text
    assert stream.read(5) == stream.head() == b""
