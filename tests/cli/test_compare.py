"""`memdiag compare` from the command line: sides, exit codes, errors, output."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import Ended, called

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
LEAK, CALM = RUNS / "burn_hybrid.csv", RUNS / "burn_baseline.csv"
OPEN = RUNS / "vision_run1.csv"


def compare(*arguments: str | Path) -> Ended:
    return called("compare", *arguments)


def test_each_outcome_has_its_exit_code() -> None:
    codes = [
        compare(LEAK, CALM).returncode,
        compare(CALM, LEAK).returncode,
        compare(OPEN, RUNS / "vision_run2.csv").returncode,
        compare(OPEN, RUNS / "vision_run2.csv", "--inconclusive", "pass").returncode,
        compare(LEAK, "missing.csv").returncode,
    ]
    assert codes == [0, 1, 3, 0, 2]


def test_directories_patterns_and_repeated_options_are_several_runs(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    for name in ("a.csv", "b.csv"):
        (before / name).write_bytes(LEAK.read_bytes())
        (after / name).write_bytes(CALM.read_bytes())
    sides = [
        (before, after),
        (f"{before}/*.csv", f"{after}/*.csv"),
        ("--before", before / "a.csv", "--before", before / "b.csv", "--after", after),
    ]
    for arguments in sides:
        document = json.loads(compare(*arguments, "--json").stdout)
        assert [len(document[side]) for side in ("base", "candidate")] == [2, 2]
        assert document["effect"] == "fixed"


@pytest.mark.parametrize(
    "arguments", [(), (LEAK,), (LEAK, CALM, CALM), (LEAK, "--before", CALM), ("--before", LEAK)]
)
def test_other_than_two_sides_is_an_error_with_a_remedy(
    arguments: tuple[str | Path, ...],
) -> None:
    ended = compare(*arguments)
    assert ended.returncode == 2
    assert re.search("compare needs two runs, got|--before requires --after", ended.stderr)
    assert "memdiag compare before.csv after.csv" in ended.stderr


def test_the_same_run_on_both_sides_is_an_error() -> None:
    ended = compare(LEAK, LEAK)
    assert ended.returncode == 2
    assert "burn_hybrid.csv is on both sides" in ended.stderr


def test_an_unreadable_run_among_several_is_named_and_ends_with_2(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    ended = compare("--before", LEAK, "--before", empty, "--after", CALM)
    assert ended.returncode == 2
    assert "FIXED" in ended.stdout
    assert "empty.csv" in ended.stderr


def test_table_of_a_document_is_chosen_as_by_analyze(tmp_path: Path) -> None:
    for name, slope in (("before", 30), ("after", 0)):
        rows = "".join(f"| {i} | {1000 + slope * i} |\n" for i in range(0, 600, 5))
        table = "\n| step | rss_mb |\n|---|---|\n"
        (tmp_path / f"{name}.md").write_text(table + "| 1 | 2 |\n" * 5 + table + rows)
    before, after = tmp_path / "before.md", tmp_path / "after.md"
    assert "--table 2" in compare(before, after).stderr
    assert "FIXED" in compare(before, after, "--table", "2").stdout


TWO_COLUMNS = "step,Before (MB),After (MB),loss\n" + "".join(
    f"{10 * n},{5000 + 300 * n},{5000 + n % 3},0.5\n" for n in range(60)
)


def test_two_columns_of_one_log_are_compared(tmp_path: Path) -> None:
    log = tmp_path / "both.csv"
    log.write_text(TWO_COLUMNS)
    fixed = compare(log, "--metric", "Before (MB)", "--against", "After (MB)", "--json")
    document = json.loads(fixed.stdout)
    assert document["effect"] == "fixed"
    assert document["base"] == [f"Before (MB) of {log}"]
    assert document["candidate"] == [f"After (MB) of {log}"]
    worse = compare(log, "--metric", "After (MB)", "--against", "Before (MB)")
    assert worse.returncode == 1
    assert "NEW LEAK" in worse.stdout


def test_columns_of_different_names_in_two_logs_are_compared(tmp_path: Path) -> None:
    before, after = tmp_path / "before.csv", tmp_path / "after.csv"
    before.write_text(TWO_COLUMNS)
    after.write_text(TWO_COLUMNS)
    chosen = ("--metric", "Before (MB)", "--against", "After (MB)")
    assert "FIXED" in compare(before, after, *chosen).stdout
    several = compare("--before", before, "--after", after, "--after", before, *chosen)
    assert "FIXED" in several.stdout


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (("--against", "After (MB)"), "--against requires --metric"),
        (("--metric", "Before (MB)", "--against", "none"), "no column 'none'"),
        (("--metric", "Before (MB)", "--against", "loss=count"), "have different units"),
        (("--metric", "Before (MB)"), "compare needs two runs, got 1 run"),
    ],
)
def test_columns_that_cannot_be_compared_are_an_error(
    tmp_path: Path, chosen: tuple[str, ...], message: str
) -> None:
    log = tmp_path / "both.csv"
    log.write_text(TWO_COLUMNS)
    ended = compare(log, *chosen)
    assert ended.returncode == 2
    assert message in ended.stderr


def test_json_goes_to_stdout_alone_and_into_a_file(tmp_path: Path) -> None:
    path = tmp_path / "compared.json"
    ended = compare(LEAK, CALM, "--json", "--json-file", path)
    assert ended.stderr == ""
    assert json.loads(ended.stdout) == json.loads(path.read_text())


def test_the_installed_command_does_the_same() -> None:
    command = [sys.executable, "-m", "memdiag", "compare", str(LEAK), str(CALM), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    here = compare(LEAK, CALM, "--json")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, here.stdout, "")


def test_markdown_is_for_a_comment_and_is_inert(tmp_path: Path) -> None:
    before, out = tmp_path / "a | <img src=x> `b`.csv", tmp_path / "c.md"
    before.write_bytes(LEAK.read_bytes())
    for runs in ((before, CALM), (CALM, before)):  # the second one replaces the first
        compare(*runs, "--markdown", out)
        text = out.read_text()
        assert "a \\| \\<img src=x\\> \\`b\\`" in text
        rows = [re.split(r"(?<!\\)\|", line) for line in text.splitlines() if line[:1] == "|"]
        assert {len(row) for row in rows} == {6}
        assert [row[1].strip() for row in rows[2:]] == ["growth per step", "rise", "peak"]
    assert text.startswith("### ❌ NEW LEAK: it now grows by 293 MB per step\n")


def test_markdown_lists_the_other_series(tmp_path: Path) -> None:
    steps = range(300)
    for name, rate in (("a", 2), ("b", 0)):
        rows = "".join(f"{n},{500 + n * rate + n % 3},{900 + n % 2}\n" for n in steps)
        (tmp_path / f"{name}.csv").write_text("step,rss_mb,vram_mb\n" + rows)
    out = tmp_path / "c.md"
    assert compare(tmp_path / "a.csv", tmp_path / "b.csv", "--markdown", out).returncode == 0
    folded = out.read_text().partition("<details><summary>1 more series</summary>")[2]
    assert "| VRAM | stable | stable | no effect |" in folded
