"""What sampling costs: 10 times a second, a tree of 10 processes on 2 simulated GPUs.

    python benchmarks/gpu_sampling.py [SECONDS]

The driver is the tests' fake one (needs a C compiler), whose calls take no time of their own, so
this is memdiag's part alone. Beside it, on the same tree and driver, those of psrecord, mprof and
nvitop's API that are installed. Fails above 1 % of a core, or above half of the cheapest peer.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BAR, SHARE_OF_PEER = 0.01, 0.5
INTERVAL_S = 0.1
START_S = 5.0  # of each run, in which modules are loaded and everything is looked at for once
PROCESSES, GPUS = 10, 2
TREE = f"""
import os, sys, time
for _ in range({PROCESSES - 1}):
    if os.fork() == 0:
        break
with open(os.path.join(sys.argv[1], str(os.getpid())), "w") as file:
    file.write(str(os.getpid()))
time.sleep(float(sys.argv[2]))
"""
# What `nvitop`'s documentation shows for following the processes of a device.
NVITOP = """
import sys, time
from nvitop import Device
pids = set(map(int, sys.argv[3:]))
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    began = time.monotonic()
    for device in Device.all():
        for process in device.processes().values():
            if process.pid in pids:
                process.gpu_memory(), process.host_memory()
    time.sleep(max(0.0, float(sys.argv[2]) - (time.monotonic() - began)))
"""


def build(directory: Path) -> Path:
    source = ROOT / "tests" / "nvml" / "fake_nvml.c"
    library = directory / "libnvidia-ml.so.1"
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return library


def environ(directory: Path, pids: list[str]) -> dict[str, str]:
    """Two cards; each process of the tree holds memory of one of them."""
    lines = [
        f"device {n} name=A100 uuid=GPU-{n} total=80G reserved=500M used=20G" for n in range(GPUS)
    ]
    lines += ["clock_ms 1000"]  # no frame file to read: the driver itself takes no time
    lines += [f"row {n % GPUS} compute pid={pid} used=2G" for n, pid in enumerate(pids)]
    scenario = directory / "scenario.txt"
    scenario.write_text("\n".join(lines) + "\n")
    return os.environ | {
        "LD_LIBRARY_PATH": str(directory),
        "FAKE_NVML_SCENARIO": str(scenario),
        "FAKE_NVML_FRAME": str(directory / "frame"),
    }


@contextlib.contextmanager
def tree(directory: Path, seconds: float) -> Iterator[tuple[int, list[str]]]:
    """A tree of processes that say who they are and then sleep."""
    pids = directory / "pids"
    pids.mkdir()
    command = [sys.executable, "-c", TREE, str(pids), str(seconds)]
    root = subprocess.Popen(command)
    try:
        while len(list(pids.iterdir())) < PROCESSES:
            time.sleep(0.01)
        yield root.pid, sorted(path.name for path in pids.iterdir())
    finally:
        root.kill()
        root.wait()
        for path in pids.iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.name), 9)


def ours(directory: Path, seconds: float) -> float:
    """CPU seconds over wall seconds of the sampling, start-up not counted, as for the peers."""
    long, short = (own_cost(directory, length) for length in (seconds + START_S, START_S))
    share = (long["cpu_s"] - short["cpu_s"]) / (long["wall_s"] - short["wall_s"])
    first = short["cpu_s"] / short["wall_s"]
    print(
        f"memdiag: {100 * share:.2f} % of a core ({100 * first:.2f} % in the first {START_S:g} s)"
    )
    return share


def own_cost(directory: Path, seconds: float) -> dict[str, float]:
    """What one recording cost, by its own account."""
    output = directory / "run.csv"
    with tempfile.TemporaryDirectory() as fresh, tree(Path(fresh), seconds + 60) as (root, pids):
        command = [sys.executable, "-m", "memdiag", "watch", "--pid", str(root), "--quiet"]
        command += ["--duration", f"{seconds}s", "--output", str(output), "--force"]
        subprocess.run(command, env=environ(directory, pids), check=False, capture_output=True)
    if not any(row.split(",")[9] for row in output.read_text().splitlines()[1:]):
        raise SystemExit("no device memory was recorded: this benchmark measures nothing")
    cost: dict[str, float] = json.loads(output.with_suffix(".meta.json").read_text())["cost"]
    return cost


def peer(name: str, directory: Path, seconds: float) -> float | None:
    """The same of another tool, start-up not counted; None where it is not installed."""
    module = {"mprof": "memory_profiler"}.get(name, name)
    if importlib.util.find_spec(module) is None:
        print(f"{name}: not installed")
        return None
    long, short = (cpu_s(name, directory, length) for length in (seconds + START_S, START_S))
    print(f"{name}: {100 * (long - short) / seconds:.2f} % of a core")
    return (long - short) / seconds


def cpu_s(name: str, directory: Path, seconds: float) -> float:
    """CPU seconds of one run of a peer."""
    with tempfile.TemporaryDirectory() as fresh, tree(Path(fresh), seconds + 60) as (root, pids):
        log = str(Path(fresh) / "log")
        command = {
            "psrecord": [
                *(sys.executable, "-c", "from psrecord.main import main; main()", str(root)),
                *("--include-children", "--interval", str(INTERVAL_S)),
                *("--duration", str(seconds), "--log", log),
            ],
            "mprof": [
                *(sys.executable, "-m", "mprof", "attach", "--include-children"),
                *("--interval", str(INTERVAL_S), "--timeout", str(int(seconds))),
                *("--output", log, str(root)),  # the process last: it ends the options
            ],
            "nvitop": [sys.executable, "-c", NVITOP, str(seconds), str(INTERVAL_S), *pids],
        }[name]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = environ(directory, pids)
        limit_s = 2 * seconds + 30
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=limit_s)
        if name != "nvitop" and not Path(log).stat().st_size:
            raise SystemExit(f"{name} recorded nothing: this measures nothing")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        build(directory)
        share = ours(directory, seconds)
        found = (peer(tool, directory, seconds) for tool in ("psrecord", "mprof", "nvitop"))
        peers = [one for one in found if one is not None]
    print(f"bar: {BAR:.0%} of a core", end="")
    if peers:
        print(f", and {SHARE_OF_PEER:.0%} of the cheapest peer ({share / min(peers):.0%})", end="")
    print()
    return 0 if share <= BAR and all(share <= SHARE_OF_PEER * one for one in peers) else 1


if __name__ == "__main__":
    raise SystemExit(main())
