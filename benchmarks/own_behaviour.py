"""Do programs behave under `memdiag run` as they do alone? Public test suites tell, test by test.

    python benchmarks/own_behaviour.py [--only execnet] [--again 6]

Takes packages that are about processes, threads, terminals and frames (their tests come with the
source distribution), each into an environment of its own without memdiag, and parts of the
interpreter's own tests. Runs them alone, under `memdiag run`, and alone once more. The files of
tests that did not end the same three times are run again, alone and under memdiag in turn, and the
rates are compared: a test that fails one time in twelve anyway is unsteady by itself; one counts as
different where chance would hardly bring such rates about (Fisher's exact test, 5 %). Needs pip and
a package index; 25 to 40 minutes on two cores. `behaviour_suites.py` has the table of suites.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from behaviour_suites import SUITES, Ended, Ready, Suite, run
from scipy.stats import fisher_exact

# By chance alone. Chosen: three failures of three under memdiag, none of eight alone.
_BY_CHANCE = 0.05
# Files are run again for so long at most, for each suite.
_AGAIN_S = 600.0

Runs = tuple[list[Ended], list[Ended]]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="suites whose name begins like this")
    parser.add_argument("--again", type=int, default=6, help="runs of what differs")
    asked = parser.parse_args()
    # A shell's `&` has it ignored, and the suites would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and end the suite that runs
    differing = 0
    for suite in SUITES:
        if suite.name.startswith(asked.only):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
                differing += _compare(suite, Path(directory), asked.again)
    return 1 if differing else 0


def _compare(suite: Suite, directory: Path, again: int) -> int:
    """Print how the tests of one suite end; how many end differently under memdiag."""
    try:
        bench = Bench(suite, directory)
    except LookupError as reason:
        print(f"{suite.name}: skipped, {reason}")
        return 0
    three = [bench.run(suite.tests, under=way) for way in (False, True, False)]
    _print_summary(suite, three)
    if not three[0].outcomes:
        print("  nothing was run")
        return 1
    alone, under = [three[0], three[2]], [three[1]]
    tests = {test for ended in three for test in ended.outcomes}
    unlike = sorted(test for test in tests if len({ended.of(test) for ended in three}) > 1)
    if unlike:
        files = {file for test in unlike for file in suite.files_of(test)}
        more = bench.run_again(sorted(files), again)
        alone, under = alone + more[0], under + more[1]
    differing = sum(_print_rates(test, alone, under) for test in unlike)
    statuses = {ended.status for ended in three}
    if not unlike and len(statuses) > 1:
        print(f"  differs: the exit status: {', '.join(str(ended.status) for ended in three)}")
        differing += 1
    print(f"  {differing} differ under memdiag, {len(unlike) - differing} unsteady", flush=True)
    return differing


class Bench:
    """One suite, ready to be run again and again."""

    def __init__(self, suite: Suite, directory: Path) -> None:
        """Raises LookupError with the reason where it cannot be made ready."""
        place = directory / "suite"
        place.mkdir()
        self._suite = suite
        self._directory = directory
        self._ready: Ready = suite.prepare(place)
        self._numbers = count()

    def run(self, tests: Sequence[str], *, under: bool, limit_s: float | None = None) -> Ended:
        """Run these of the suite's files."""
        work = self._directory / f"run{next(self._numbers)}"
        work.mkdir()
        limit_s = self._suite.limit_s if limit_s is None else limit_s
        return run(self._ready, tests, work, under=under, limit_s=limit_s)

    def run_again(self, files: Sequence[str], times: int) -> Runs:
        """Run these files alone and under memdiag in turn, while there is time."""
        alone: list[Ended] = []
        under: list[Ended] = []
        until_s = time.monotonic() + _AGAIN_S
        for _ in range(times):
            for runs, way in ((alone, False), (under, True)):
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    return alone, under
                ended = self.run(files, under=way, limit_s=left_s)
                if ended.status is not None:
                    runs.append(ended)
        return alone, under


def _print_summary(suite: Suite, three: Sequence[Ended]) -> None:
    first = three[0].outcomes
    counts = ", ".join(f"{number} {end}" for end, number in Counter(first.values()).items())
    seconds = " / ".join(
        f"{ended.took_s:.0f}" + ("" if ended.status is not None else " (cut off)")
        for ended in three
    )
    print(f"{suite.name}: {len(first)} tests ({counts}); alone / under / alone: {seconds} s")


def _print_rates(test: str, alone: Sequence[Ended], under: Sequence[Ended]) -> bool:
    """Print how often a test ends in which way; whether memdiag makes the difference."""
    ways = [Counter(ended.of(test) for ended in runs) for runs in (alone, under)]
    usual = ways[0].most_common(1)[0][0]
    table = [[way[usual], way.total() - way[usual]] for way in ways]
    differs = bool(fisher_exact(table).pvalue < _BY_CHANCE)
    shown = "; under: ".join(
        ", ".join(f"{number} of {way.total()} {end}" for end, number in way.most_common())
        for way in ways
    )
    print(f"  {'differs' if differs else 'unsteady'}: {test}: alone: {shown}")
    return differs


if __name__ == "__main__":
    sys.exit(main())
