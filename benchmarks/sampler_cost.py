"""What watching costs: CPU of memdiag's sampler for a tree of 10 processes at 10 Hz.

    python benchmarks/sampler_cost.py [--seconds 20] [--against psrecord,mprof]

The same tree is watched by each in turn; the figure is CPU seconds (user + system, children of the
watcher that are not the target included) over wall seconds, start-up not counted for memdiag.
`psrecord` and `mprof` (memory-profiler) are measured where they are installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

# A parent and nine children with a second thread each; everything asleep, so that all CPU spent
# is the watcher's.
_TREE = """
import os, threading, time
pids = []
for _ in range(9):
    pid = os.fork()
    if pid == 0:
        break
    pids.append(pid)
threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
hoard = bytearray(20_000_000)
print("ready", flush=True)
time.sleep(3600)
"""


class Tree:
    """Ten processes that do nothing."""

    def __enter__(self) -> psutil.Process:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _TREE], stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        for _ in range(10):
            self._process.stdout.readline()
        return psutil.Process(self._process.pid)

    def __exit__(self, *ignored: object) -> None:
        os.killpg(self._process.pid, 9)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def watcher(name: str, pid: int, seconds: float, directory: Path) -> list[str] | None:
    """The command by which `name` watches `pid`; None where it is not installed."""
    if name == "memdiag":
        run = [sys.executable, "-m", "memdiag", "watch", "--pid", str(pid), "-q"]
        return [*run, "--duration", f"{seconds + 30}", "-o", str(directory / "r.csv")]
    program = shutil.which(name)
    if program is None:
        return None
    if name == "psrecord":
        more = ["--interval", "0.1", "--include-children", "--log", str(directory / "log")]
        return [program, str(pid), *more]
    more = ["attach", "--interval", "0.1", "--include-children"]
    return [program, *more, "--output", str(directory / "dat"), str(pid)]


def cpu_share(command: list[str], seconds: float, settle_s: float = 5.0) -> float:
    """CPU seconds per wall second of `command`, after it has started up."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(settle_s)
        before_s, began_s = _cpu_s(process.pid), time.monotonic()
        time.sleep(seconds)
        return (_cpu_s(process.pid) - before_s) / (time.monotonic() - began_s)
    finally:
        process.kill()
        process.wait()


def _cpu_s(pid: int) -> float:
    watcher = psutil.Process(pid)
    times = [p.cpu_times() for p in (watcher, *watcher.children(recursive=True))]
    return float(sum(t.user + t.system for t in times))


def main() -> int:
    """Print one line per watcher; 1 if memdiag takes more than 1 % of a core."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--against", default="psrecord,mprof")
    options = parser.parse_args()
    shares: dict[str, float] = {}
    for name in ("memdiag", *filter(None, options.against.split(","))):
        with Tree() as tree, tempfile.TemporaryDirectory() as directory:
            command = watcher(name, tree.pid, options.seconds, Path(directory))
            if command is None:
                print(f"{name:10} not installed")
                continue
            shares[name] = cpu_share(command, options.seconds)
            print(f"{name:10} {100 * shares[name]:6.2f} % of a core", flush=True)
    return int(shares["memdiag"] > 0.01)


if __name__ == "__main__":
    sys.exit(main())
