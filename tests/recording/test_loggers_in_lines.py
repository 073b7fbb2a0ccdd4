"""What logging libraries print before the text: a level, a logger, a function and its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log

PREFIXES = {
    "logging": "INFO:root:",
    "a module's logger": "DEBUG:utils.mem:",
    "loguru": "2026-03-01 10:00:00.123 | INFO     | utils.mem:report:12 - ",
    "a file": "[memory_monitor.py:21] ",
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_only_the_text_behind_is_read(tmp_path: Path, prefix: str) -> None:
    log = "".join(f"{prefix}it {20 * n} loss 0.5 rss {800 + n} MB\n" for n in range(60))
    (series,) = read_log(tmp_path, log).series
    assert (series.column, series.axis.name) == ("rss (bytes)", "it")


def test_a_decimal_comma_is_quoted_whole(tmp_path: Path) -> None:
    log = "".join(f"étape {n} mémoire {800 + n} Mo\n" for n in range(60))
    log += "point de contrôle (1,9 Go)\n"
    assert any("1,9 Go" in note for note in read_log(tmp_path, log).notes)
