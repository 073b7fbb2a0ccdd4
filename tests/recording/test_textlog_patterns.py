"""Logs read by a pattern of the user's, and hostile ones: an answer in bounded time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from logs import read_log

from memdiag.errors import MemdiagError, ReadError, UsageError

MB = 1e6


def test_pattern_names_what_to_read(tmp_path: Path) -> None:
    lines = "".join(f"<{i}> uses {100 + i} of them\n" for i in range(20))
    recording = read_log(tmp_path, lines, pattern=r"<(?P<step>\d+)> uses (?<rss_mb>[\d.]+)")
    series = next(s for s in recording.series if s.metric == "rss_bytes")
    assert series.y.tolist() == [(100 + i) * MB for i in range(20)]
    assert series.x.tolist() == list(range(20))


def test_patterns_that_cannot_work_are_usage_errors(tmp_path: Path) -> None:
    for pattern in ("(?<a>", "no groups", "(?<rss_mb>x{1000}{1000}{1000})", "(?<a>.)(?=x)"):
        with pytest.raises(UsageError):
            read_log(tmp_path, "step 1 rss 5\n" * 9, pattern=pattern)
    with pytest.raises(ReadError, match="matches no line"):
        read_log(tmp_path, "step 1 rss 5\n" * 9, pattern="(?<rss_mb>zzz)")


@pytest.mark.parametrize(
    "options",
    [{}, {"pattern": r"(?<rss_mb>(a+)+$)"}, {"pattern": r"(?<rss_mb>(x|xx)*y)"}],
    ids=["none", "nested repeats", "alternatives"],
)
@pytest.mark.parametrize(
    "content",
    [
        b"a" * 10_000_000,
        b"step 1 rss " + b"9" * 10_000_000 + b" MB\n",
        b"1" + b",111" * 2_000_000,
        b"x: 1 MB " * 1_000_000,
        (b"a" * 30 + b"!\n") * 10_000,
        b"[" * 1_000_000,
        b'{"a":' * 300_000,
        b'[{"step": 1, "rss_mb": ' + b"9" * 10_000_000 + b"}]",
        b"|" * 2_000_000 + b"\n" + b"|--" * 500_000,
    ],
    ids=[
        "long line",
        "long number",
        "long commas",
        "many fields",
        "bomb",
        "nest",
        "json",
        "digits",
        "bars",
    ],
)
def test_hostile_content_ends_soon(
    tmp_path: Path, content: bytes, options: dict[str, object]
) -> None:
    began_s = time.process_time()
    with pytest.raises(MemdiagError):
        read_log(tmp_path, content, **options)
    assert time.process_time() - began_s < 20
