"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

PLUGIN = "memdiag.integrations.pytest_plugin"
Run = Callable[..., str]
INSTALLED = any(e.value == PLUGIN for e in entry_points(group="pytest11"))
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # Hypothesis's takes longer than the rest


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs pytest over a file's text; its output, after asserting on the outcome."""

    def run_text(text: str, *arguments: str, **outcomes: int) -> str:
        path = tmp_path / "test_it.py"
        path.write_text("import pytest\nKEEP = []\n" + text)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-p",
            PLUGIN,
            str(path),
        ]
        ended = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=os.environ | {"COLUMNS": "100", "PYTHONIOENCODING": "utf-8"} | ALONE,
        )
        summary = ended.stdout.splitlines()[-1]
        for name, number in outcomes.items():
            assert f"{number} {name}" in summary, ended.stdout + ended.stderr
        return ended.stdout

    return run_text


@pytest.mark.skipif(not INSTALLED, reason="memdiag is not installed")
def test_plugin_is_loaded_where_memdiag_is_installed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--markers"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "@pytest.mark.memdiag" in ended.stdout


def test_leak_fails_with_the_evidence_of_the_command_line(run: Run) -> None:
    shown = run(
        """
@pytest.mark.memdiag
def test_leak():
    KEEP.append(bytes(1024))
""",
        failed=1,
    )
    assert "LEAK   host memory grows 1.0" in shown
    assert "per call" in shown
    assert " where    Malloc_in_use" in shown or " where    malloc_in_use" in shown
    assert "┤" in shown


def test_healthy_bodies_pass_logs_and_warnings_included(run: Run) -> None:
    run(
        """
import logging, warnings

@pytest.mark.memdiag
def test_nothing():
    [n for n in range(100)]

@pytest.mark.memdiag
def test_logs_and_warns():
    logging.getLogger("a").warning("hello %s", "x" * 500)
    warnings.warn("hey", UserWarning)
    print("x" * 500)

@pytest.mark.memdiag
def test_takes_fixtures(tmp_path, memdiag_loop):
    assert tmp_path.is_dir()
""",
        passed=3,
    )


def test_loop_fails_at_its_end_and_yields_its_numbers(run: Run) -> None:
    shown = run(
        """
def test_loop(memdiag_loop):
    numbers = []
    for step in memdiag_loop():
        numbers.append([step])
        assert step == len(numbers) - 1

def test_healthy_loop(memdiag_loop):
    for step in memdiag_loop(seconds=3):
        [step] * 10
""",
        failed=1,
        passed=1,
    )
    assert " where    python_blocks" in shown


def test_failure_of_the_body_itself_is_its_own(run: Run) -> None:
    shown = run(
        """
@pytest.mark.memdiag
def test_breaks():
    KEEP.append(1)
    assert len(KEEP) < 5
""",
        failed=1,
    )
    assert "assert len(KEEP) < 5" in shown


def test_growth_within_max_growth_passes(run: Run) -> None:
    run(
        """
@pytest.mark.memdiag(max_growth="2KB")
def test_allowed():
    KEEP.append(bytes(1024))

@pytest.mark.memdiag(max_growth="100KB/1000calls", metric="malloc")
def test_more_than_allowed():
    KEEP.append(bytes(1024))
""",
        passed=1,
        failed=1,
    )


def test_metric_chooses_what_counts(run: Run) -> None:
    run(
        """
@pytest.mark.memdiag(metric="blocks", max_growth="640B")
def test_blocks():
    KEEP.append(bytes(100_000))
""",
        passed=1,
    )


SLOW = """
import time

@pytest.mark.memdiag(seconds=0.5{more})
def test_slow():
    time.sleep(0.01)
    KEEP.append(bytes(1024))
"""


def test_inconclusive_test_passes_and_is_listed(run: Run) -> None:
    shown = run(SLOW.format(more=""), passed=1)
    assert "memdiag: inconclusive" in shown
    assert "test_slow: it still grew after" in shown


def test_inconclusive_test_can_fail_or_pass_silently(run: Run) -> None:
    assert "INCONCLUSIVE" in run(SLOW.format(more=", inconclusive='fail'"), failed=1)
    assert "memdiag: inconclusive" not in run(SLOW.format(more=", inconclusive='pass'"), passed=1)


def test_unreadable_metric_is_not_stable(run: Run) -> None:
    test = "@pytest.mark.memdiag(metric='cuda'{more})\ndef test_it():\n    pass\n"
    assert "none of cuda could be read here" in run(test.format(more=""), passed=1)
    failing = run(test.format(more=", inconclusive='fail'"), failed=1)
    assert "none of cuda could be read here" in failing


INVALID = {
    "metrik=1": "unknown memdiag option 'metrik'",
    "metric='disk'": "unknown metric 'disk'; choose from malloc, blocks, cuda, rss",
    "steps='many'": "invalid steps='many': not a whole number above 0",
    "steps=0": "invalid steps=0: not a whole number above 0",
    "seconds=-1": "invalid seconds=-1: not a number above 0",
    "max_growth='lots'": "write 10KB or 1MB/1000calls",
    "max_growth='1KB/min'": "is not per call",
    "inconclusive='maybe'": "invalid inconclusive='maybe'; choose from warn, fail, pass",
    "100": "takes keyword arguments only",
}


def test_invalid_options_fail_with_the_valid_ones(run: Run) -> None:
    tests = (
        f"@pytest.mark.memdiag({options})\ndef test_{at}():\n    pass\n"
        for at, options in enumerate(INVALID)
    )
    shown = run("".join(tests), failed=len(INVALID))
    assert [told for told in INVALID.values() if told not in shown] == []


def test_unmarked_tests_run_once_and_nothing_heavy_is_loaded(run: Run) -> None:
    run(
        """
import sys

def test_once():
    KEEP.append(1)
    assert len(KEEP) == 1
    heavy = {"numpy", "scipy", "polars", "rich", "typer", "psutil", "pynvml"}
    assert not heavy & sys.modules.keys()
    ours = {name for name in sys.modules if name.startswith("memdiag")}
    assert ours <= {"memdiag", "memdiag.tags", "memdiag.integrations",
                    "memdiag.integrations.pytest_plugin"}, ours

@pytest.mark.memdiag
def test_measured_without_numpy():
    heavy = {"numpy", "scipy", "polars", "rich", "typer"}
    assert not heavy & sys.modules.keys()
""",
        "--strict-markers",
        passed=2,
    )
