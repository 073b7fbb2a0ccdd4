"""How long `watch --attach` stops a process: the minimum, the median and the maximum (ms).

    python benchmarks/attach.py [--visits 30] [--load 0]

Attaches to a loop in each Python of this machine from 3.8 on; with --load, while this many
processes keep the cores busy.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from interpreters import interpreters

from memdiag.capture.probelink.elf_symbols import exported, mapped_files
from memdiag.capture.probelink.guest_probe import attached_probe
from memdiag.capture.probelink.ptrace import Tracee

_LOOP = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.001)"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--visits", type=int, default=30, help="of each Python")
    parser.add_argument("--load", type=int, default=0, help="busy processes beside it")
    options = parser.parse_args()
    print("| Python | min ms | median ms | max ms |\n|---|---|---|---|")
    busy = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(busy) for _ in range(options.load)]
    for version, program in sorted(interpreters().items(), key=lambda item: len(item[0])):
        stops_ms = [stop_s * 1e3 for stop_s in _stops(program, options.visits)]
        row = (min(stops_ms), statistics.median(stops_ms), max(stops_ms))
        print(f"| {version} | " + " | ".join(f"{ms:.1f}" for ms in row) + " |")
    for other in others:
        other.kill()


def _stops(program: str, visits: int) -> Iterator[float]:
    """The length of each stop (s): the first is a whole visit, the others make its calls again."""
    with _running(program) as pid:
        with attached_probe(pid) as probe:
            assert probe.injected is not None
            yield probe.injected.stopped_s or 0.0
        libc = next(file for file in mapped_files(pid) if "/libc." in file.name)
        function = exported(libc, frozenset({"getpid"}))["getpid"]
        for _ in range(visits - 1):
            tracee = Tracee(pid, patience_s=3.0)
            with tracee:
                tracee.write(tracee.map_room(1), b"\0")
                tracee.call(function)
            yield tracee.stopped_s


@contextmanager
def _running(program: str) -> Iterator[int]:
    with subprocess.Popen([program, "-c", _LOOP], stdout=subprocess.PIPE) as target:
        assert target.stdout is not None
        target.stdout.readline()
        try:
            yield target.pid
        finally:
            target.kill()


if __name__ == "__main__":
    main()
