"""Values that no machine has: a verdict or an error, soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from commandline import called

FLAT = [5000 + (i * 7919) % 13 for i in range(200)]
TABLES = {
    "steps of a billion": [f"{i * 10**9},{mb}" for i, mb in enumerate(FLAT)],
    "one step of a trillion": [*(f"{i},{mb}" for i, mb in enumerate(FLAT)), f"{10**12},5000"],
    "steps beyond 64 bits": [f"{10**30 + i},{mb}" for i, mb in enumerate(FLAT)],
    "steps at the end of 64 bits": [f"{2**63 - 300 + i},{mb}" for i, mb in enumerate(FLAT)],
    "one reading of 1e300": [*(f"{i},{mb}" for i, mb in enumerate(FLAT)), "200,1e300"],
    "readings of 1e300": [f"{i},{1e300 + i}" for i in range(200)],
    "readings of 400 digits": [f"{i},{'9' * 400}" for i in range(200)],
    "readings below zero": [f"{i},-{mb}" for i, mb in enumerate(FLAT)],
    "infinity and none": [f"{i},{('inf', 'nan', '-inf')[i % 3]}" for i in range(200)],
}


@pytest.mark.parametrize("name", TABLES)
def test_extreme_values_end_in_bounded_time(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text("step,rss_mb\n" + "\n".join(TABLES[name]) + "\n")
    began = time.monotonic()
    ended = called("analyze", path)
    assert ended.returncode in {0, 2, 3}
    assert "Traceback" not in ended.stderr
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    "line", ["{i} rss {mb} MB", "{i}000000000 rss {mb} MB", "99999999999 {mb} MB"]
)
def test_counts_of_billions_in_front_of_lines_end_in_bounded_time(
    tmp_path: Path, line: str
) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(line.format(i=i, mb=mb) for i, mb in enumerate(FLAT)))
    began = time.monotonic()
    assert called("analyze", path).returncode in {0, 2, 3}
    assert time.monotonic() - began < 30
