"""Real CUDA trainings under memdiag, held against nvidia-smi's and the frameworks' own figures.

    python tools/gpu_check.py [--out DIRECTORY] [--steps N] [--only CHECK ...] [--jobs N]

For a machine with an NVIDIA GPU and a CUDA build of torch; nothing in the tests depends on it.

* Each disease of `fixtures/programs/cuda_training.py` is recorded by `memdiag run`: is the verdict
  right, are the figures those of nvidia-smi and of torch? Does one that runs out of memory leave
  torch's snapshot?
* `watched`: a training that leaks is recorded from outside, by `memdiag watch`.
* The programs of `fixtures/programs/gpu` run once bare and once under `memdiag run --explain
  always`: does the report name the line and its bytes, and is the loss the same to the last bit?
  Those of frameworks that are not installed are left out, which is said.
* `overhead`: the training at full speed, alternately bare and recorded, with nothing beside it.

Written to the directory: the recordings, torch's figures (`*.truth.jsonl`), the reports, and
`table.md`. Fails where a verdict is not as expected, or a figure is off by more than the tolerance.
--jobs: how many checks run side by side; `overhead` always runs alone.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "fixtures" / "programs" / "cuda_training.py"
KEEPING = ROOT / "fixtures" / "programs" / "gpu"
MIB = 1 << 20
# nvidia-smi prints whole MiB and is asked at other moments than memdiag: one segment of the caching
# allocator (20 MiB) may come in between.
SMI_TOLERANCE_MIB, TORCH_TOLERANCE_MIB = 24.0, 0.5
BYTES_TOLERANCE = 0.15
OVERHEAD_BAR, OVERHEAD_PAIRS, OVERHEAD_STEPS = 0.01, 5, 600
NOT_A_LEAK = frozenset({"stable", "warmup", "inconclusive"})
EXPECTED = {
    "stable": frozenset({"stable", "warmup"}),
    "warmup": frozenset({"stable", "warmup"}),
    "variable": NOT_A_LEAK,
    "copies": frozenset({"leak"}),
    "graph": frozenset({"leak"}),
    "fragmentation": NOT_A_LEAK,
    "outside": frozenset({"leak"}),
    "oom": frozenset({"leak"}),
}
# Those that end by an error of torch's, which the report has to explain. They fill 3 GiB by 8 MiB a
# step: later than the 300 steps in which trainings warm up, and so they get twice as many.
RUN_OUT = frozenset({"oom"})
FRAMEWORKS = {
    "kept_loss_torch": "torch",
    "kept_weights_jax": "jax",
    "kept_fields_cupy": "cupy",
}
WATCHED_S = 40.0
CHECKS = (*EXPECTED, "watched", *FRAMEWORKS, "overhead")


@dataclass(kw_only=True)
class Smi:
    """What nvidia-smi says of each process, asked once a second until stopped."""

    seen: list[tuple[float, dict[int, int]]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        command = ["nvidia-smi", "--query-compute-apps=pid,used_memory"]
        command += ["--format=csv,noheader,nounits"]
        while not self.stopped.wait(1.0):
            asked_s = time.monotonic()
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            at_s = (asked_s + time.monotonic()) / 2
            rows = [line.split(",") for line in done.stdout.splitlines() if "," in line]
            used: dict[int, int] = {}
            for pid, mib in rows:
                if pid.strip().isdigit() and mib.strip().isdigit():
                    used[int(pid)] = used.get(int(pid), 0) + int(mib)
            self.seen.append((at_s, used))


@contextmanager
def nvidia_smi() -> Iterator[Smi]:
    """What nvidia-smi says meanwhile."""
    smi = Smi()
    watcher = threading.Thread(target=smi.run)
    watcher.start()
    try:
        yield smi
    finally:
        smi.stopped.set()
        watcher.join()


@dataclass(frozen=True, kw_only=True)
class Result:
    """One line of the table. said, expected: in words. offs: figures that are off, by name, with
    what is tolerated; None where a figure could not be compared."""

    check: str
    said: str
    expected: str
    is_as_expected: bool
    offs: dict[str, tuple[float | None, float]] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        # In a container nvidia-smi may list nobody; the frameworks' own figures are always there.
        known = all(off is not None for name, (off, _) in self.offs.items() if name != SMI)
        near = all(off is None or off <= most for off, most in self.offs.values())
        return self.is_as_expected and known and near


SMI = "VRAM (MiB)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "gpu-check")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=list(CHECKS), choices=list(CHECKS))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    why = why_not()
    if why:
        print(f"gpu-check can't run here: {why}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = [check for check in options.only if is_there(FRAMEWORKS.get(check, "torch"))]
    missing = [check for check in options.only if check not in wanted]
    with ThreadPoolExecutor(options.jobs) as pool:
        beside = [check for check in wanted if check != "overhead"]
        results = list(pool.map(lambda one: run(one, options.out, options.steps), beside))
    if "overhead" in wanted:
        results.append(overhead(options.out))
    text = table(results)
    (options.out / "table.md").write_text(text, encoding="utf-8")
    print(text)
    if missing:
        print("left out, not installed: " + ", ".join(FRAMEWORKS[check] for check in missing))
    wrong = [result.check for result in results if not result.is_right]
    print("not as expected: " + ", ".join(wrong) if wrong else "all as expected")
    return 1 if wrong else 0


def is_there(framework: str) -> bool:
    return importlib.util.find_spec(framework) is not None


def why_not() -> str:
    """Why this machine can't do it, "" where it can."""
    code = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    if subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode:
        return "torch finds no CUDA device in this environment (make gpu-check TORCH=1)"
    try:
        subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "nvidia-smi does not work"
    return ""


def run(check: str, out: Path, steps: int) -> Result:
    print(f"{check} ...", flush=True)
    if check in EXPECTED:
        return disease(check, out, steps)
    return watched(out, steps) if check == "watched" else keeping(check, out, steps)


def memdiag(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "memdiag", *arguments]


def training(disease: str, steps: int, truth: Path, *more: str) -> list[str]:
    start = [sys.executable, str(PROGRAM), "--disease", disease, "--steps", str(steps)]
    return [*start, "--truth", str(truth), *more]


def recorded(out: Path, name: str) -> tuple[list[str], Path, Path]:
    """The options that write a recording and its report, and where these are then."""
    recording, report = out / f"{name}.csv", out / f"{name}.report.json"
    return ["--output", str(recording), "--json-file", str(report)], recording, report


def disease(name: str, out: Path, steps: int) -> Result:
    steps *= 2 if name in RUN_OUT else 1
    truth_path = out / f"{name}.truth.jsonl"
    options, recording, report = recorded(out, name)
    options += ["--snapshot"] if name in RUN_OUT else []
    command = memdiag("run", "--force", *options, "--", *training(name, steps, truth_path))
    with nvidia_smi() as smi, (out / f"{name}.txt").open("w") as said:
        done = subprocess.run(command, check=False, cwd=ROOT, stdout=said, stderr=said)
    truth, rows = read_truth(truth_path), list(read(recording))
    found = json.loads(report.read_text())["recordings"][0]
    cause = (found["ending"] or {}).get("cause")
    has_snapshot = any(out.glob(f"{name}.snapshot-*.pickle"))
    explained = cause == ("device_memory" if name in RUN_OUT else None)
    offset_s = offset(rows, truth)
    offs = {
        SMI: (off_smi(rows, smi, offset_s), SMI_TOLERANCE_MIB),
        "reserved (MiB)": (
            off_torch(rows, truth, "vram_reserved_bytes", "reserved_bytes"),
            TORCH_TOLERANCE_MIB,
        ),
        "allocated (MiB)": (
            off_torch(rows, truth, "vram_allocated_bytes", "allocated_bytes"),
            TORCH_TOLERANCE_MIB,
        ),
        "allocations": (off_torch(rows, truth, "vram_allocations", "allocations", per=1), 0.0),
    }
    return Result(
        check=name,
        said=f"{said_of(found)}, exit code {done.returncode}",
        expected=" or ".join(sorted(EXPECTED[name])),
        is_as_expected=found["verdict"] in EXPECTED[name]
        and explained
        and is_of_device(found)
        and has_snapshot == (name in RUN_OUT),
        offs=offs,
    )


def watched(out: Path, steps: int) -> Result:
    """A training that leaks, recorded from outside: no steps, no allocator, the driver alone."""
    steps = int(steps + 20 * WATCHED_S)
    options, recording, report = recorded(out, "watched")
    truth_path = out / "watched.truth.jsonl"
    program = subprocess.Popen(
        training("graph", steps, truth_path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert program.stdout is not None
        program.stdout.readline()  # "ready"
        time.sleep(10.0)  # the model is on the device, and torch has warmed up
        command = memdiag("watch", "--pid", str(program.pid), "--duration", f"{WATCHED_S:g}s")
        with nvidia_smi() as smi, (out / "watched.txt").open("w") as said:
            began_s = time.monotonic()
            subprocess.run([*command, *options], check=False, cwd=ROOT, stdout=said, stderr=said)
    finally:
        program.send_signal(signal.SIGINT)
        program.wait()
    rows, found = list(read(recording)), json.loads(report.read_text())["recordings"][0]
    return Result(
        check="watched",
        said=said_of(found),
        expected="leak or inconclusive",
        is_as_expected=found["verdict"] in {"leak", "inconclusive"} and is_of_device(found),
        # (It began some tenths of a second later.)
        offs={SMI: (off_smi(rows, smi, began_s), SMI_TOLERANCE_MIB)},
    )


def said_of(found: dict[str, Any]) -> str:
    at = found["decided_by"]
    return f"{found['verdict']} of {found['series'][at]['metric']}" if at is not None else "nothing"


def is_of_device(found: dict[str, Any]) -> bool:
    """Return True if the series that decides is of the device's memory."""
    at = found["decided_by"]
    return at is not None and "device" in found["series"][at]["role"]


def keeping(name: str, out: Path, steps: int) -> Result:
    """A program that keeps what it should not: bare, then with its cause looked for."""
    program = KEEPING / f"{name}.py"
    lines = program.read_text(encoding="utf-8").splitlines()
    kept_at = next(n for n, line in enumerate(lines, 1) if "# <- kept here" in line)
    # (JAX would take most of the device, whatever runs beside it.)
    environment = os.environ | {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.1"}
    bare_command = [sys.executable, str(program), str(steps)]
    bare = subprocess.run(
        bare_command, check=True, capture_output=True, text=True, env=environment
    ).stdout
    options, _, report = recorded(out, name)
    command = memdiag("run", "--force", "--explain", "always", *options, "--", *bare_command)
    done = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, env=environment
    )
    (out / f"{name}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    found = json.loads(report.read_text())["recordings"][0]
    culprits = (found["cause"] or {}).get("culprits") or [{"line": None, "bytes_per_step": None}]
    kept, each = printed(bare, "kept per step"), culprits[0]["bytes_per_step"]
    off = None if each is None else abs(each / float(kept) - 1)
    loss, same = printed(bare, "loss"), printed(done.stdout, "loss")
    return Result(
        check=name,
        said=f"{said_of(found)}, line {culprits[0]['line']}, loss {same}",
        expected=f"leak, line {kept_at}, loss {loss}",
        is_as_expected=(found["verdict"], culprits[0]["line"], same) == ("leak", kept_at, loss)
        and is_of_device(found),
        offs={"bytes per step (share)": (off, BYTES_TOLERANCE)},
    )


def printed(text: str, name: str) -> str:
    """What a program printed behind a name."""
    found = re.search(rf"^{name} (.*)$", text, re.MULTILINE)
    return found.group(1) if found else ""


def overhead(out: Path) -> Result:
    """The time of a step by CUDA events at full speed, recorded over bare: the median of pairs,
    which take turns in which of the two runs first."""
    print("overhead ...", flush=True)
    ratios = []
    for number in range(OVERHEAD_PAIRS):
        took_ms = {}
        for is_recorded in (number % 2 == 0, number % 2 == 1):
            truth = out / f"overhead{number}.{'recorded' if is_recorded else 'bare'}.jsonl"
            command = training("stable", OVERHEAD_STEPS, truth, "--pace", "0")
            if is_recorded:
                command = memdiag("run", "--force", *recorded(out, "overhead")[0], "--", *command)
            subprocess.run(command, check=False, cwd=ROOT, capture_output=True)
            took_ms[is_recorded] = step_ms(read_truth(truth))
        ratios.append(took_ms[True] / took_ms[False] - 1)
    found = statistics.median(ratios)
    each = ", ".join(f"{ratio:+.2%}" for ratio in ratios)
    return Result(
        check="overhead",
        said=f"{found:+.2%} of a step of {took_ms[False]:.2f} ms ({each})",
        expected=f"at most {OVERHEAD_BAR:.0%}",
        is_as_expected=found <= OVERHEAD_BAR,
    )


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def read_truth(path: Path) -> list[dict[str, Any]]:
    """Torch's figures after each step, without a line that was cut off."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def step_ms(truth: list[dict[str, Any]]) -> float:
    """Median time of a step by CUDA events; the first tenth warms up."""
    return statistics.median(float(row["step_ms"]) for row in truth[len(truth) // 10 :])


def offset(rows: Sequence[dict[str, str]], truth: Sequence[dict[str, Any]]) -> float:
    """What turns the times of a recording into those of the program's clock, by the steps."""
    ends_s = {row["step"]: float(row["at_s"]) for row in truth}
    found = [
        ends_s[int(row["step"])] - float(row["at_s"])
        for row in rows
        if row["step"] and row.get("vram_allocated_bytes") and int(row["step"]) in ends_s
    ]
    return statistics.median(found) if found else 0.0


def off_smi(rows: Sequence[dict[str, str]], smi: Smi, offset_s: float) -> float | None:
    """Median distance of NVML's figure in the recording from nvidia-smi's, MiB.

    nvidia-smi was asked now and then; between two answers its figure is on the line between them.
    """
    distances = []
    for row in rows:
        if not row.get("vram_bytes") or row["process"] == "tree":
            continue
        at_s, pid = offset_s + float(row["at_s"]), int(row["pid"])
        known = [(seen_s, used[pid]) for seen_s, used in smi.seen if pid in used]
        for (before_s, before), (after_s, after) in pairwise(known):
            if before_s <= at_s <= after_s:
                there = before + (after - before) * (at_s - before_s) / (after_s - before_s)
                distances.append(abs(int(row["vram_bytes"]) / MIB - there))
    return statistics.median(distances) if distances else None


def off_torch(
    rows: list[dict[str, str]],
    truth: list[dict[str, Any]],
    ours: str,
    theirs: str,
    per: int = MIB,
) -> float | None:
    """Median distance of a step's figure in the recording from torch's at its end, in MiB."""
    by_step = {row["step"]: row[theirs] for row in truth}
    distances = [
        abs(int(row[ours]) - by_step[int(row["step"])]) / per
        for row in rows
        if row.get(ours) and row["step"] and int(row["step"]) in by_step
    ]
    return statistics.median(distances) if distances else None


def table(results: Sequence[Result]) -> str:
    """The table in Markdown."""
    lines = ["| check | memdiag | expected | off by | |", "|---|---|---|---|---|"]
    for one in results:
        offs = ", ".join(f"{name} {amount(off)}" for name, (off, _) in one.offs.items())
        right = "ok" if one.is_right else "WRONG"
        lines.append(f"| {one.check} | {one.said} | {one.expected} | {offs} | {right} |")
    return "\n".join(lines) + "\n"


def amount(off: float | None) -> str:
    return "not compared" if off is None else f"{off:.3g}"


if __name__ == "__main__":
    raise SystemExit(main())
