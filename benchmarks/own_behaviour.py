"""Do programs behave under `memdiag run` as they do alone? Test suites of public packages tell.

    python benchmarks/own_behaviour.py [--only execnet]

Downloads the source distributions of packages that are all about starting processes, installs them
into an environment of their own (without memdiag), and runs their tests alone, under `memdiag run`,
and alone once more. Every test must end as it does alone; one that ends differently in the two runs
alone is unsteady by itself, and is named. Needs pip and a package index; takes a few minutes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

_LONGEST_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A package and its tests: what they need, and where they are in the source distribution."""

    package: str
    needs: tuple[str, ...]
    tests: tuple[str, ...]


SUITES = (
    # Gateways to other interpreters: subprocesses, pipes, threads, termination.
    Suite(package="execnet==2.1.2", needs=("pytest<9", "pytest-timeout"), tests=("testing",)),
    # multiprocessing by fork, spawn, forkserver and a start method of its own; crashing workers,
    # semaphores, a resource tracker that counts what is left.
    Suite(
        package="loky==3.7.0",
        needs=("pytest<9", "pytest-timeout", "psutil", "numpy"),
        tests=(
            "tests/test_loky_backend.py",
            "tests/test_resource_tracker.py",
            "tests/test_cloudpickle_wrapper.py",
            "tests/test_synchronize.py",
        ),
    ),
)

Outcomes = dict[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", help="one package")
    only = parser.parse_args().only
    differing = 0
    for suite in SUITES:
        if only is None or suite.package.startswith(only):
            with tempfile.TemporaryDirectory() as directory:
                differing += _compare(suite, Path(directory))
    return 1 if differing else 0


def _compare(suite: Suite, directory: Path) -> int:
    """Print how the tests of one suite end; how many end differently under memdiag."""
    python, source = _prepare(suite, directory)
    runs = [_run(suite, python, source, directory, way) for way in ("alone", "under", "again")]
    alone, under, again = (outcomes for outcomes, _ in runs)
    unsteady = {test for test in alone if alone[test] != again.get(test)}
    differing = {
        test
        for test in {*alone, *under}
        if alone.get(test) != under.get(test) and test not in unsteady
    }
    counts = ", ".join(f"{number} {outcome}" for outcome, number in Counter(alone.values()).items())
    seconds = " / ".join(f"{took_s:.0f}" for _, took_s in runs)
    print(f"{suite.package:<16} {len(alone)} tests ({counts}); alone / under / alone: {seconds} s")
    print(
        f"{'':<16} {len(differing)} differ under memdiag, {len(unsteady)} differ between runs alone"
    )
    for test in sorted(differing):
        print(f"  differs: {test}: {alone.get(test)} -> {under.get(test)}")
    for test in sorted(unsteady):
        print(f"  unsteady: {test}: {alone[test]}, {under.get(test)}, {again.get(test)}")
    return len(differing)


def _prepare(suite: Suite, directory: Path) -> tuple[Path, Path]:
    """An environment with the package, and its unpacked source distribution."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    _call([*pip, "download", "--no-deps", "--no-binary", ":all:", "-d", directory, suite.package])
    (archive,) = directory.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(directory / "source", filter="data")
    (source,) = (directory / "source").iterdir()
    _call([sys.executable, "-m", "venv", directory / "venv"])
    python = directory / "venv" / "bin" / "python"
    _call([python, "-m", "pip", "-q", "install", suite.package, *suite.needs])
    return python, source


def _run(
    suite: Suite, python: Path, source: Path, directory: Path, way: str
) -> tuple[Outcomes, float]:
    """How each test ends, and how long all of them take (s)."""
    report = directory / f"{way}.xml"
    tests = [python, "-m", "pytest", *suite.tests, "-q", "-p", "no:cacheprovider"]
    tests += ["--timeout=120", f"--junitxml={report}"]
    memdiag = [sys.executable, "-m", "memdiag", "run", "-q", "-o", directory / "run.csv", "--"]
    command = [*memdiag, *tests] if way == "under" else tests
    began_s = time.monotonic()
    subprocess.run(
        command,
        cwd=source,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=_LONGEST_S,
    )
    return _outcomes(report), time.monotonic() - began_s


def _outcomes(report: Path) -> Outcomes:
    """Test -> passed, failed, error or skipped, of a JUnit report."""
    words = {"failure": "failed", "error": "error", "skipped": "skipped"}
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        how = next((words[child.tag] for child in case if child.tag in words), "passed")
        found[f"{case.get('classname')}::{case.get('name')}"] = how
    return found


def _call(command: list[str | Path]) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
