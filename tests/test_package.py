"""What holds for the package as a whole: its version, and how little an import brings along."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

import memdiag

HEAVY = ("matplotlib", "numpy", "pandas", "polars", "psutil", "pynvml", "scipy", "torch")
# Modules of memdiag's own that define so many classes that they take as long as Typer.
SLOW = ("memdiag.values.findings", "memdiag.values.measurements")


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        # typer would ask its parent processes which shell they are: here there may be none.
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )


def test_the_distribution_and_the_package_have_one_version() -> None:
    assert importlib.metadata.version("memdiag") == memdiag.__version__


def test_importing_memdiag_brings_its_tags_and_the_standard_library_alone() -> None:
    before_and_after = python(
        "import __future__, contextlib, collections.abc, typing, sys\n"
        "before = set(sys.modules)\n"
        "import memdiag\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    assert before_and_after.stdout.split() == ["memdiag", "memdiag.tags"]


def test_every_public_name_is_there_and_documented() -> None:
    for name in memdiag.__all__:
        assert getattr(memdiag, name).__doc__, name
    with pytest.raises(AttributeError, match="nosuch"):
        _ = memdiag.nosuch  # type: ignore[attr-defined]


def test_tags_do_nothing_without_a_watcher() -> None:
    ended = python(
        "import memdiag\n"
        "memdiag.step(1)\n"
        "memdiag.counter('model_copies', 3)\n"
        "with memdiag.phase('eval'):\n"
        "    with memdiag.phase('inner'):\n"
        "        print('body')"
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("body\n", "", 0)


def test_a_phase_lets_exceptions_through() -> None:
    with pytest.raises(ZeroDivisionError), memdiag.phase("eval"):
        _ = 1 / 0


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["--show-completion", "bash"], ["run", "--help"]],
)
def test_the_command_line_starts_without_heavy_modules(arguments: list[str]) -> None:
    ended = python(
        "import sys\n"
        "from memdiag.cli.app import main\n"
        "sys.argv[0] = 'memdiag'\n"
        "code = main()\n"
        f"heavy = set(sys.modules) & set({(HEAVY if 'run' in arguments else HEAVY + SLOW)!r})\n"
        "print(*sorted(heavy), file=sys.stderr)\n"
        "sys.exit(code)",
        *arguments,
    )
    assert (ended.stderr.strip(), ended.returncode) == ("", 0)
    assert ended.stdout


def test_a_log_whose_lines_are_alike_is_judged_without_polars_and_pydantic(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    lines = (f"12:00:{n % 60:02d} step {n} rss: {1000 + n % 7} MB" for n in range(300))
    log.write_text("\n".join(lines))
    ended = python(
        "import sys\n"
        "from memdiag.cli.app import main\n"
        "sys.argv[0] = 'memdiag'\n"
        "code = main()\n"
        "print(*sorted({'polars', 'pydantic', 'scipy'} & set(sys.modules)), file=sys.stderr)\n"
        "sys.exit(code)",
        "analyze",
        str(log),
    )
    assert (ended.stderr.strip(), ended.returncode) == ("", 0)
    assert "STABLE" in ended.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_numpy_is_imported_without_threads_and_leaves_no_trace_in_the_environment() -> None:
    ended = python(
        "import os\n"
        "from pathlib import Path\n"
        "from memdiag.cli.lazy_imports import import_numpy\n"
        "before = dict(os.environ)\n"
        "import_numpy()\n"
        "assert dict(os.environ) == before\n"
        "print(len(list(Path('/proc/self/task').iterdir())))"
    )
    assert (ended.stdout.strip(), ended.returncode) == ("1", 0)
