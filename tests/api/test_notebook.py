"""`%%memdiag`: what a cell leaves in memory, in an IPython of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("IPython")

SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
shell.run_line_magic("load_ext", "memdiag")
for cell in sys.argv[1:]:
    shell.run_cell(cell)
    print("-- next cell")
"""


def cells(*texts: str, cwd: Path) -> list[str]:
    """What each cell shows."""
    done = subprocess.run(
        [sys.executable, "-c", SHELL, *texts],
        cwd=cwd,
        env={"IPYTHONDIR": str(cwd), "PATH": "", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("-- next cell\n")[:-1]


def test_cell_that_keeps_memory(tmp_path: Path) -> None:
    keeps = "%%memdiag\nkept.append(bytearray(8_000_000)); print('shown')"
    _, first, second, nothing = cells("kept = []", keeps, keeps, "%%memdiag\nx = 1", cwd=tmp_path)
    assert re.match(r"shown\nThis cell leaves 8\.0\d MB in memory \(malloc \+8\.0\d MB, ", first)
    assert "\n  kept  +8.00 MB\n" in first
    assert re.search(r"\nRun 2 of this cell; the last ones left \+8\.0\d MB, \+8\.0\d MB\.", second)
    assert nothing.startswith("This cell leaves next to nothing in memory")


def test_memory_that_is_garbage_is_not_left(tmp_path: Path) -> None:
    makes = "%%memdiag\na = [bytearray(8_000_000)]; a.append(a); del a"
    assert "next to nothing" in cells("", makes, makes, cwd=tmp_path)[-1]


def test_result_that_ipython_keeps_is_named(tmp_path: Path) -> None:
    big = "class Big:\n    def __init__(self): self.memory = bytearray(8_000_000)"
    _, shown = cells(big, "%%memdiag\nBig()", cwd=tmp_path)
    assert "  Out  +8.00 MB" in shown


def test_repeated_cell_leaks_or_does_not(tmp_path: Path) -> None:
    _, leaks, stays = cells(
        "kept = []",
        "%%memdiag --repeat --seconds 30\nkept.append(bytearray(100_000)); print('shown')",
        "%%memdiag --repeat\nlist(range(1000))",
        cwd=tmp_path,
    )
    assert leaks.startswith("shown\nLEAK after ")
    assert leaks.count("shown") == 1
    assert "malloc +100 KB per run" in leaks
    assert stays.startswith("STABLE after ")


def test_failing_cell_shows_its_own_error_alone(tmp_path: Path) -> None:
    once, repeated = cells("%%memdiag\n1/0", "%%memdiag --repeat\n1/0", cwd=tmp_path)
    for shown in (once, repeated):
        assert "ZeroDivisionError" in shown
        assert "This cell leaves" not in shown


@pytest.mark.parametrize("options", ["--nosuch", "--repeat --seconds x", "--seconds -1"])
def test_wrong_options_are_an_error_in_words(options: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHELL, f"%%memdiag {options}\nprint('ran')"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "ran" not in done.stdout
    assert "UsageError: %%memdiag" in done.stdout + done.stderr
    assert "--repeat [--seconds S]" in done.stdout + done.stderr
