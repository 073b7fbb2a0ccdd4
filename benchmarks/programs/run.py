"""Is the verdict right on 22 real trainings, within a minute each, and what leaks named?

    python benchmarks/programs/run.py [--seconds 55] [CASE ...]

Runs each case of `cases.py` under `memdiag run`, one after the other, and prints verdict, rate
beside the true one, and the kind of memory that the growing meters tell. Bars: every verdict right,
every rate within 15 %, every kind right. A warm-up that is called stable counts as right, and the
other way round: neither is a leak. Not a part of `make bench`: the whole takes half an hour.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CASES = Path(__file__).resolve().parent / "cases.py"
RATE_BAR = 0.15
CALM = frozenset({"stable", "warmup"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a case does. bytes_per_step: 0 where it does not leak."""

    bytes_per_step: float = 0.0
    kind: str = ""


# Tensors are 4 bytes per value. What surrounds one takes 357 bytes of malloc (mallinfo2 over 20,000
# kept `torch.empty`, torch 2.13), and some 40 of Python's own allocator (estimated).
_AROUND = 400
TRUTHS = {
    "stable_mlp": Truth(),
    "stable_cnn": Truth(),
    "loss_items": Truth(),
    "evaluation_spikes": Truth(),
    "sawtooth_of_cycles": Truth(),
    "checkpoint_spikes": Truth(),
    "growing_batch": Truth(),
    "workers_prefetch": Truth(),
    "cache_fills": Truth(),
    "replay_buffer": Truth(),
    "varied_lengths": Truth(),
    "features_of_keys": Truth(),
    "history": Truth(bytes_per_step=200 * 64 * 4 + _AROUND, kind="tensors"),
    "small_dict": Truth(bytes_per_step=256 * 4 + _AROUND, kind="tensors"),
    "hook_activations": Truth(bytes_per_step=512 * 64 * 4 + _AROUND, kind="tensors"),
    "graph_of_losses": Truth(bytes_per_step=8192 * 4 + 2 * _AROUND, kind="native or graph"),
    "numpy_metrics": Truth(bytes_per_step=5000 * 8, kind="native or graph"),
    "native": Truth(bytes_per_step=50_000, kind="native or graph"),
    "cycles_without_collector": Truth(bytes_per_step=16_384 * 4 + _AROUND, kind="tensors"),
    "worker": Truth(bytes_per_step=8 * 4096, kind="another process"),
    "evaluations": Truth(bytes_per_step=15 / 20 * (32 * 64 * 4 + _AROUND), kind="tensors"),
    "python_objects": Truth(bytes_per_step=40 * (184 + 56 + 32), kind="Python objects"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=55.0)
    parser.add_argument("case", nargs="*", help="all without any")
    options = parser.parse_args()
    unknown = [name for name in options.case if name not in TRUTHS]
    if unknown:
        parser.error(f"no case {unknown[0]!r}; there are: {', '.join(TRUTHS)}")
    names = options.case or list(TRUTHS)
    print(f"{'case':26} {'verdict':13} {'bytes per step':>15} {'true':>9}  kind")
    right = sum(judge(name, options.seconds) for name in names)
    print(f"{right} of {len(names)} right in verdict, rate and kind")
    return 0 if right == len(names) else 1


def judge(name: str, seconds: float) -> bool:
    """Run a case and print its line; whether all is right."""
    truth = TRUTHS[name]
    found = recorded(name, seconds)
    verdict = found["verdict"]
    decisive = found["series"][found["decided_by"]]
    if not truth.kind:
        is_right = verdict in CALM
        print(f"{name:26} {verdict:13} {'':15} {'none':>9}  {'' if is_right else 'WRONG'}")
        return is_right
    rate = rate_of(found, decisive)
    near = rate is not None and abs(rate / truth.bytes_per_step - 1) <= RATE_BAR
    kind = kind_of(found, decisive)
    wrong = [what for what, ok in (("verdict", verdict == "leak"), ("rate", near)) if not ok]
    wrong += ["kind"] if kind != truth.kind else []
    shown = "-" if rate is None else f"{rate:,.0f}"
    told = f"WRONG: {', '.join(wrong)}" if wrong else ""
    print(
        f"{name:26} {verdict:13} {shown:>15} {truth.bytes_per_step:9,.0f}  {kind} {told}",
        flush=True,
    )
    return not wrong


def recorded(name: str, seconds: float) -> dict[str, Any]:
    """The finding on one run."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "found.json"
        command = [sys.executable, "-m", "memdiag", "run", "--quiet", "--json-file", str(report)]
        command += ["--", sys.executable, str(CASES), name, str(seconds)]
        ended = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True)
        if not report.exists():
            sys.exit(f"{name}: memdiag made no report\n{ended.stderr}")
        (found,) = json.loads(report.read_text())["recordings"]
    return dict(found)


def rate_of(found: dict[str, Any], decisive: dict[str, Any]) -> float | None:
    """Bytes per step of the series that decides, where it counts bytes over steps."""
    growth = decisive.get("growth_bytes_per_step")
    return None if growth is None else growth["value"]


def kind_of(found: dict[str, Any], decisive: dict[str, Any]) -> str:
    """What kind of memory leaks, by which meters of the guilty process leak with it."""
    if decisive["process"] not in {"main", "tree", ""}:
        return "another process"
    leaking = {s["metric"] for s in found["series"] if s["verdict"] == "leak"}
    if leaking & {"tensors", "tensors_cpu", "tensor_bytes"}:
        return "tensors"
    malloc = next((s for s in found["series"] if s["metric"] == "malloc_bytes"), None)
    if malloc is not None and malloc["verdict"] == "leak":
        return "native or graph"
    if "python_blocks" in leaking:
        return "Python objects"
    return "pages"


if __name__ == "__main__":
    sys.exit(main())
