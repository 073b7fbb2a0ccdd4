"""The demonstration: three real trainings under `memdiag run`, judged before your eyes.

Ends with 0 if every verdict and every exit code was the right one. Recordings stay in
`demo-output/`.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "demo-output"
NO_TORCH = """The demo trains with torch, which is not installed in this environment.
  make demo TORCH=1                 installs it, whatever build pip finds (on Linux that may be
                                    one for GPUs, with several GB of CUDA packages)
  PIP_EXTRA_INDEX_URL=... make demo takes a CPU build from the index that you name"""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One training: what it is, and what memdiag has to say of it."""

    program: str
    story: str
    verdicts: tuple[str, ...]
    exit_code: int


SCENES = (
    Scene(
        program="torch_leak.py",
        story="keeps something of every step: memory grows for ever",
        verdicts=("leak",),
        exit_code=1,
    ),
    Scene(
        program="torch_warmup.py",
        story="fills its caches, then stays: it looks like a leak at first",
        verdicts=("warmup",),
        exit_code=0,
    ),
    Scene(
        program="torch_healthy.py",
        story="nothing grows",
        verdicts=("stable", "warmup"),
        exit_code=0,
    ),
)


def main() -> int:
    if importlib.util.find_spec("torch") is None:
        print(NO_TORCH, file=sys.stderr)
        return 4
    OUTPUT.mkdir(exist_ok=True)
    began_s = time.monotonic()
    outcomes = [play(number, scene) for number, scene in enumerate(SCENES, start=1)]
    print(f"\n{'=' * 78}")
    for line, _ in outcomes:
        print(line)
    print(f"{time.monotonic() - began_s:.0f} s in all; the recordings are in {OUTPUT.name}/")
    return 0 if all(right for _, right in outcomes) else 1


def play(number: int, scene: Scene) -> tuple[str, bool]:
    """Run one scene; the line that sums it up, and whether memdiag was right."""
    name = Path(scene.program).stem
    findings = OUTPUT / f"{name}.json"
    findings.unlink(missing_ok=True)
    shown = ["run", "--force", "--output", f"{OUTPUT.name}/{name}.csv"]
    shown += ["--json-file", f"{OUTPUT.name}/{name}.json"]
    shown += ["--", "python", f"fixtures/programs/{scene.program}"]
    print(f"\n{'=' * 78}\n{number} of {len(SCENES)}: a training that {scene.story}")
    print("$ memdiag " + " ".join(shown) + "\n", flush=True)
    command = [sys.executable if word == "python" else word for word in shown]
    code = subprocess.run([sys.executable, "-m", "memdiag", *command], cwd=ROOT, check=False)
    print(f"\n$ echo $?\n{code.returncode}", flush=True)
    verdict = json.loads(findings.read_text())["verdict"] if findings.exists() else "no verdict"
    right = verdict in scene.verdicts and code.returncode == scene.exit_code
    expected = f"{' or '.join(scene.verdicts)}, exit code {scene.exit_code}"
    judgement = "as it should be" if right else f"WRONG, expected {expected}"
    return f"{name:14} {verdict:12} exit code {code.returncode}   {judgement}", right


if __name__ == "__main__":
    sys.exit(main())
