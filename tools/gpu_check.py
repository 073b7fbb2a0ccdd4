"""Real CUDA trainings under `memdiag run`, held against nvidia-smi's and torch's own figures.

    python tools/gpu_check.py [--out DIRECTORY] [--steps N] [--only DISEASE ...]

For a machine with an NVIDIA GPU and a CUDA build of torch; nothing in the tests depends on it. Each
disease of `fixtures/programs/cuda_training.py` runs once bare and once under memdiag. Written to
the directory: the recordings, torch's figures (`*.truth.json`), the reports, and `table.md`. Fails
where a verdict is not as expected, or a figure is off by more than the tolerance.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "fixtures" / "programs" / "cuda_training.py"
MIB = 1 << 20
# nvidia-smi prints whole MiB and is asked at other moments than memdiag: one segment of the caching
# allocator (20 MiB) may come in between.
SMI_TOLERANCE_MIB, TORCH_TOLERANCE_MIB = 24.0, 0.5
OVERHEAD_BAR = 0.01
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


@dataclass(kw_only=True)
class Smi:
    """What nvidia-smi says of each process, asked once a second until stopped."""

    seen: list[tuple[float, dict[int, int]]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        command = ["nvidia-smi", "--query-compute-apps=pid,used_memory"]
        command += ["--format=csv,noheader,nounits"]
        while not self.stopped.wait(1.0):
            at_s = time.monotonic()
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            rows = [line.split(",") for line in done.stdout.splitlines() if "," in line]
            used: dict[int, int] = {}
            for pid, mib in rows:
                if pid.strip().isdigit() and mib.strip().isdigit():
                    used[int(pid)] = used.get(int(pid), 0) + int(mib)
            self.seen.append((at_s, used))


@dataclass(frozen=True, kw_only=True)
class Result:
    """One line of the table. None where a figure could not be compared."""

    disease: str
    verdict: str
    smi_off_mib: float | None
    reserved_off_mib: float | None
    allocated_off_mib: float | None
    allocations_off: float | None
    overhead: float
    peak_vram_mib: float | None
    cause: str | None = None

    @property
    def is_right(self) -> bool:
        pairs = [(self.smi_off_mib, SMI_TOLERANCE_MIB)]
        pairs += [(self.reserved_off_mib, TORCH_TOLERANCE_MIB)]
        pairs += [(self.allocated_off_mib, TORCH_TOLERANCE_MIB)]
        pairs += [(self.allocations_off, 0)]
        near = all(off is None or off <= tolerance for off, tolerance in pairs)
        # In a container nvidia-smi may list nobody; torch's own figures are always to be had.
        compared = None not in {self.reserved_off_mib, self.allocated_off_mib, self.allocations_off}
        told = self.cause == ("device_memory" if self.disease in RUN_OUT else None)
        as_expected = self.verdict in EXPECTED[self.disease] and told
        return near and compared and as_expected and self.overhead <= OVERHEAD_BAR


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "gpu-check")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--only", nargs="*", default=list(EXPECTED), choices=list(EXPECTED))
    options = parser.parse_args()
    why = why_not()
    if why:
        print(f"gpu-check can't run here: {why}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    results = [check(disease, options.out, options.steps) for disease in options.only]
    text = table(results)
    (options.out / "table.md").write_text(text, encoding="utf-8")
    print(text)
    wrong = [result.disease for result in results if not result.is_right]
    print("not as expected: " + ", ".join(wrong) if wrong else "all as expected")
    return 1 if wrong else 0


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


def check(disease: str, out: Path, steps: int) -> Result:
    """One disease: bare, then recorded."""
    print(f"{disease} ...", flush=True)
    steps *= 2 if disease in RUN_OUT else 1
    training = [sys.executable, str(PROGRAM), "--disease", disease, "--steps", str(steps)]
    bare_path, truth_path = out / f"{disease}.bare.json", out / f"{disease}.truth.json"
    bare = subprocess.run([*training, "--truth", str(bare_path)], check=False, cwd=ROOT)
    if bool(bare.returncode) is not (disease in RUN_OUT):
        raise SystemExit(f"{disease}: the training ended with {bare.returncode} by itself")
    recording, report = out / f"{disease}.csv", out / f"{disease}.report.json"
    command = [sys.executable, "-m", "memdiag", "run", "--force", "--output", str(recording)]
    command += ["--json-file", str(report), "--", *training, "--truth", str(truth_path)]
    smi = Smi()
    watcher = threading.Thread(target=smi.run)
    watcher.start()
    began_s = time.monotonic()
    subprocess.run(command, check=False, cwd=ROOT)
    smi.stopped.set()
    watcher.join()
    truth = json.loads(truth_path.read_text())
    rows = list(read(recording))
    document = json.loads(report.read_text())
    ending = document["recordings"][0]["ending"] or {}
    return Result(
        disease=disease,
        verdict=document["verdict"],
        cause=ending.get("cause"),
        smi_off_mib=off_smi(rows, smi, began_s),
        reserved_off_mib=off_torch(rows, truth, "vram_reserved_bytes", "reserved_bytes"),
        allocated_off_mib=off_torch(rows, truth, "vram_allocated_bytes", "allocated_bytes"),
        allocations_off=off_torch(rows, truth, "vram_allocations", "allocations", per=1),
        overhead=step_ms(truth) / step_ms(json.loads(bare_path.read_text())) - 1,
        peak_vram_mib=max(
            (int(r["vram_bytes"]) / MIB for r in rows if r["vram_bytes"]), default=None
        ),
    )


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def step_ms(truth: list[dict[str, Any]]) -> float:
    """Median time of a step by CUDA events; the first tenth warms up."""
    return statistics.median(float(row["step_ms"]) for row in truth[len(truth) // 10 :])


def off_smi(rows: list[dict[str, str]], smi: Smi, began_s: float) -> float | None:
    """Median distance of NVML's figure in the recording from nvidia-smi's nearest one, MiB.

    `at_s` counts from when memdiag began to record, some tenths of a second after `began_s`.
    """
    distances = []
    for row in rows:
        if not row["vram_bytes"] or row["process"] == "tree":
            continue
        at_s = began_s + float(row["at_s"])
        there = [
            (abs(seen_s - at_s), used[int(row["pid"])])
            for seen_s, used in smi.seen
            if int(row["pid"]) in used
        ]
        if there:
            distances.append(abs(int(row["vram_bytes"]) / MIB - min(there)[1]))
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


def table(results: list[Result]) -> str:
    """The table in Markdown."""
    titles = ["disease", "verdict", "expected", "off nvidia-smi", "reserved off", "allocated off"]
    titles += ["allocations off", "overhead", "peak VRAM", ""]
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for result in results:
        cells = [
            result.disease,
            result.verdict,
            " or ".join(sorted(EXPECTED[result.disease])),
            mib(result.smi_off_mib),
            mib(result.reserved_off_mib),
            mib(result.allocated_off_mib),
            "not compared" if result.allocations_off is None else f"{result.allocations_off:g}",
            f"{result.overhead:+.2%}",
            mib(result.peak_vram_mib),
            "ok" if result.is_right else "WRONG",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def mib(value: float | None) -> str:
    return "not compared" if value is None else f"{value:.1f} MiB"


if __name__ == "__main__":
    raise SystemExit(main())
