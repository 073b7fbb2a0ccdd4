"""Logs and exports packed by gzip or zstd."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError
from memdiag.recording.inputs.compression import largest_size
from memdiag.recording.read import read
from memdiag.recording.read_options import ReadOptions

N = 30


# `zstd -19` of the lines below; Python has no packer for it before 3.14.
ZSTD = base64.b64decode(
    "KLUv/QRobQMAQoYQELC5AUy3Yqkku7t7x3InOBBgkLB71Wce8Xc3e9X/2xe3+K5VnWlE39nMVf5t27uqmYh3ZlW/"
    "DQYJQjggdIIIpiQUOqgRwHb7Z/ClNRASARj4GCn58lyYP1SzOq+MI1th46K8qWeChgrIKr4SAaQ="
)


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_packed_logs(tmp_path: Path, packing: str) -> None:
    text = "".join(f"step {i} rss {100 + i} MB\n" for i in range(N))
    content = gzip.compress(text.encode()) if packing == "gzip" else ZSTD
    series = series_of(read_log(tmp_path, content), "rss_bytes")
    assert series.y.tolist() == [(100 + i) * 1e6 for i in range(N)]


@pytest.mark.parametrize("content", [b"\x1f\x8b\x08\0broken", b"\x28\xb5\x2f\xfdbroken"])
def test_damaged_packing_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ReadError):
        read_log(tmp_path, content)


def _zstd_frame(content: bytes) -> bytes:
    """As zstd stores what it cannot press: a frame of one raw block (RFC 8878)."""
    size = len(content)
    header = b"\x28\xb5\x2f\xfd\xa0" + size.to_bytes(4, "little")
    return header + (size << 3 | 1).to_bytes(3, "little") + content


def test_packed_exports_are_read_or_refused_with_what_to_do(tmp_path: Path) -> None:
    exports = Path(__file__).parents[2] / "fixtures" / "exports"
    events = next(exports.glob("*.tensorboard")).read_bytes()
    unpacked = read_log(tmp_path, events)
    assert len(read_log(tmp_path, gzip.compress(events)).series) == len(unpacked.series)
    if any(importlib.util.find_spec(name) for name in ("compression", "zstandard")):
        assert len(read_log(tmp_path, _zstd_frame(events)).series) == len(unpacked.series)
        return
    with pytest.raises(ReadError, match="not plain text") as caught:
        read_log(tmp_path, _zstd_frame(events))
    assert "zstd -d" in caught.value.remedy


def _bomb(blocks: int) -> bytes:
    """128 KiB of one letter per block of four bytes."""
    block = ((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"x"
    last = (1 << 3 | 1).to_bytes(3, "little") + b"\n"
    return b"\x28\xb5\x2f\xfd\x00\x38" + block * blocks + last


def test_a_few_kilobytes_that_unpack_to_gigabytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(_bomb(1 << 14))
    with pytest.raises(ReadError, match="decompresses to more than 2 GB"):
        read(str(path), ReadOptions(max_input_bytes=2 * 10**9))


def test_sizes_are_told_before_anything_is_unpacked() -> None:
    text = "".join(f"step {i} rss {100 + i} MB\n" for i in range(N)).encode()
    assert len(text) <= largest_size(ZSTD) <= 128 << 10
    assert largest_size(_zstd_frame(text)) == len(text)
    assert largest_size(_zstd_frame(text) * 3) == 3 * len(text)
    assert largest_size(_bomb(8)) == 8 * (128 << 10) + 1
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    assert largest_size(skippable + _zstd_frame(text)) == len(text)
    assert largest_size(b"\x28\xb5\x2f\xfd") == largest_size(b"") == 0


_LINE = b"2026-02-07 12:00:00 step %07d loss 0.5 | rss: %05d MB | " + b"x" * 60 + b"\n"
_READ = """
import re, sys
from pathlib import Path
from memdiag.recording.read import read
series = read(sys.argv[1]).series[0]
print(len(series.y), int(series.y.max() / 1e6), int(series.x[-1]))
print(re.search(r"VmHWM:\\s*([0-9]+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize("way", ["stdin", "gzip"])
def test_a_large_log_that_can_be_read_only_once_is_not_held_in_memory(
    tmp_path: Path, way: str
) -> None:
    """Of few readings, and much between them."""
    silence = b"." * 1500 + b"\n"
    text = b"".join(_LINE % (n, 500 + n) + silence * 100 for n in range(1100))
    if way == "gzip":
        packed = tmp_path / "log.gz"
        packed.write_bytes(gzip.compress(text, 1))
    command = [sys.executable, "-c", _READ, "-" if way == "stdin" else str(packed)]
    given = text if way == "stdin" else None
    done = subprocess.run(command, input=given, capture_output=True, check=True)
    figures, peak_kib = done.stdout.decode().splitlines()
    assert figures == "1100 1599 1099"
    assert int(peak_kib) << 10 < len(text)
