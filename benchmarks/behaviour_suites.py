"""The test suites that `own_behaviour.py` runs: where they come from, and how each test ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from xml.etree import ElementTree

# Of a test that the report does not name: its run was cut off, or a part of it (a subtest) failed.
ABSENT = "absent"
# What hangs must not take the suite's whole time with it: a test of pytest's, and a whole module of
# Python's own. Chosen.
_TEST_S, _MODULE_S = 120, 300
_PYTEST = ("pytest<9", "pytest-timeout")
# Worst last: where a report names a test twice, the worse end counts.
_ENDS = ("passed", "skipped", "failed", "error")
_TAGS = {"skipped": "skipped", "failure": "failed", "error": "error"}
# What a developer's machine may set, and tests of interpreters look at.
_VARIABLES = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPATH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the tests of one run ended. status: of the whole command; None where time was up."""

    outcomes: Mapping[str, str]
    status: int | None
    took_s: float

    def of(self, test: str) -> str:
        """How this test ended."""
        return self.outcomes.get(test, ABSENT)


class Ready(Protocol):
    """A suite that can be run."""

    def command(self, report: Path, tests: Collection[str]) -> list[str | Path]:
        """What runs `tests` and writes a JUnit report."""

    @property
    def where(self) -> Path:
        """The directory to run it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Tests, as named on the command line, and how long one run of them may take."""

    name: str
    tests: tuple[str, ...]
    limit_s: int = 600

    def prepare(self, directory: Path) -> Ready:
        """Make it ready in `directory`. Raises LookupError with the reason where it cannot be."""
        raise NotImplementedError

    def files_of(self, test: str) -> tuple[str, ...]:
        """What to name on the command line to have this test run, in the company it has."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Package(Suite):
    """A package on the index: its own tests out of its source distribution, run by pytest."""

    needs: tuple[str, ...] = ()

    def prepare(self, directory: Path) -> Ready:
        """An environment with the package and without memdiag, and its unpacked source."""
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
        download = [
            "download",
            "--no-deps",
            "--no-binary",
            ":all:",
            "-d",
            str(directory),
            self.name,
        ]
        _call([*pip, *download])
        (archive,) = directory.glob("*.tar.gz")
        with tarfile.open(archive) as file:
            file.extractall(directory / "source", filter="data")
        (source,) = (directory / "source").iterdir()
        _call([sys.executable, "-m", "venv", directory / "venv"])
        python = directory / "venv" / "bin" / "python"
        _call([python, "-m", "pip", "-q", "install", self.name, *_PYTEST, *self.needs])
        return _ByPytest(python=python, where=source)

    def files_of(self, test: str) -> tuple[str, ...]:
        """The test's file."""
        return (test.partition("::")[0],)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfPython(Suite):
    """Parts of the interpreter's own tests. made: test modules to be written, by name."""

    made: tuple[tuple[str, str], ...] = ()

    def prepare(self, directory: Path) -> Ready:
        """The interpreter below any virtual environment, if it has come with its tests."""
        python = Path(getattr(sys, "_base_executable", sys.executable))
        ask = "import importlib.util as u, sys; sys.exit(not u.find_spec('test.test_os'))"
        if subprocess.run([python, "-c", ask], check=False, capture_output=True).returncode != 0:
            raise LookupError(f"{python} has come without its tests")
        for name, text in self.made:
            (directory / f"{name}.py").write_text(text)
        return _ByRegrtest(python=python, where=directory, is_made=bool(self.made))

    def files_of(self, test: str) -> tuple[str, ...]:
        """The test's module; all of them for a test that has come from elsewhere."""
        named = tuple(name for name in self.tests if f".{name}." in f".{test}")
        return named or self.tests


@dataclass(frozen=True, slots=True, kw_only=True)
class _ByPytest:
    python: Path
    where: Path

    def command(self, report: Path, tests: Collection[str]) -> list[str | Path]:
        options = ["-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
        options += [f"--timeout={_TEST_S}", f"--junitxml={report}"]
        return [self.python, "-m", "pytest", *options, *tests]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ByRegrtest:
    python: Path
    where: Path
    is_made: bool

    def command(self, report: Path, tests: Collection[str]) -> list[str | Path]:
        # A process for each module, so that one that crashes takes no others with it.
        options = ["-j1", "--timeout", str(_MODULE_S), "--junit-xml", str(report)]
        options += ["--testdir", str(self.where)] if self.is_made else []
        # With this many a test that would start its Python with -I does without.
        return ["env", f"PYTHONHOME={sys.base_prefix}", self.python, "-m", "test", *options, *tests]


def run(suite: Ready, tests: Collection[str], work: Path, *, under: bool, limit_s: float) -> Ended:
    """Run `tests` alone or under `memdiag run`; files go into the empty directory `work`."""
    report, log = work / "report.xml", work / "log.txt"
    command = suite.command(report, tests)
    if under:
        options = ["-q", "--fail-on", "never", "-o", str(work / "run.csv")]
        command = [sys.executable, "-m", "memdiag", "run", *options, "--", *command]
    environ = {name: text for name, text in os.environ.items() if name not in _VARIABLES}
    began_s = time.monotonic()
    with log.open("wb") as said:
        # In a session of its own, to be ended as a whole.
        process = subprocess.Popen(
            command,
            cwd=suite.where,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            status = _status(process, limit_s)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    took_s = time.monotonic() - began_s
    return Ended(outcomes=_outcomes(report), status=status, took_s=took_s)


def _status(process: subprocess.Popen[bytes], limit_s: float) -> int | None:
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None


def _outcomes(report: Path) -> dict[str, str]:
    """Test -> how it ended, of a JUnit report; empty where none was written."""
    found: dict[str, str] = {}
    if not report.exists():
        return found
    for case in ElementTree.parse(report).iter("testcase"):
        test = _name(case)
        ends = [_TAGS[child.tag] for child in case if child.tag in _TAGS]
        if test:
            found[test] = max([*ends, found.get(test, "passed")], key=_ENDS.index)
    return found


def _name(case: ElementTree.Element) -> str:
    """ "tests/test_it.py::Class::test_it" of pytest, "test.test_it.Class.test_it" of Python's."""
    name, file = case.get("name", ""), case.get("file")
    if file is None:
        return name
    module = file.removesuffix(".py").replace("/", ".")
    classes = case.get("classname", "").removeprefix(module).strip(".").split(".")
    return "::".join([file, *filter(None, classes), name])


def _call(command: list[str | Path]) -> None:
    subprocess.run(command, check=True)


_MULTIPROCESSING = """\
import unittest
from test import _test_multiprocessing
_test_multiprocessing.install_tests_in_module_dict(globals(), "{method}")
if __name__ == "__main__":
    unittest.main()
"""

SUITES: tuple[Suite, ...] = (
    # Hooks that look at frames, signatures and warnings.
    Package(name="pluggy==1.7.0", tests=("testing",), limit_s=120),
    # Terminals, pagers, editors, streams at the end of the program.
    Package(name="click==8.5.1", tests=("tests",), limit_s=180),
    # Threads, monitors, atexit, bars in several processes.
    Package(
        name="tqdm==4.70.1",
        needs=("pytest-asyncio", "numpy", "rich"),
        tests=("tests", "--ignore=tests/tests_perf.py"),  # these measure the machine
        limit_s=300,
    ),
    # Workers by processes and threads, mapped files that are to be removed, hashes over frames.
    Package(
        name="joblib==1.6.0",
        needs=("pytest-asyncio", "psutil", "numpy", "threadpoolctl"),
        tests=tuple(
            f"joblib/test/test_{part}.py"
            for part in ("parallel", "memmapping", "memory", "missing_multiprocessing", "module")
        ),
    ),
    # multiprocessing by fork, spawn, forkserver and a start method of its own; crashing workers,
    # semaphores, a resource tracker that counts what is left.
    Package(
        name="loky==3.7.0",
        needs=("psutil", "numpy"),
        tests=(
            "tests/test_loky_backend.py",
            "tests/test_resource_tracker.py",
            "tests/test_cloudpickle_wrapper.py",
            "tests/test_synchronize.py",
        ),
    ),
    # Gateways to other interpreters: subprocesses, pipes, threads, termination.
    Package(name="execnet==2.1.2", tests=("testing",)),
    OfPython(
        name="CPython",
        tests=(
            *("test_subprocess", "test_popen", "test_fork1", "test_wait3", "test_wait4"),
            *("test_signal", "test_threadsignals", "test_faulthandler", "test_eintr"),
            *("test_threading", "test_thread", "test_atexit", "test_finalization", "test_weakref"),
            *("test_sys", "test_sys_setprofile", "test_sys_settrace", "test_gc", "test_audit"),
            *("test_site", "test_import", "test_importlib", "test_pkgutil", "test_zipimport"),
            *("test_runpy", "test_cmd_line", "test_cmd_line_script", "test_script_helper"),
            *("test_os", "test_posix", "test_pty", "test_tty", "test_fcntl", "test_resource"),
            *("test_trace", "test_profile", "test_cprofile", "test_bdb", "test_pdb"),
            *("test_tracemalloc", "test_warnings", "test_traceback", "test_exceptions"),
            *("test_inspect", "test_repl", "test_code_module", "test_support", "test_capi"),
            *("test_utf8_mode", "test_c_locale_coercion", "test_tempfile", "test_venv"),
            *("test_multiprocessing_main_handling", "test_asyncio"),
        ),
        limit_s=1500,
    ),
    # Some builds of Python leave the four lines out that make tests of a start method of it.
    OfPython(
        name="CPython's multiprocessing by fork",
        tests=("test_by_fork",),
        made=(("test_by_fork", _MULTIPROCESSING.format(method="fork")),),
    ),
)
