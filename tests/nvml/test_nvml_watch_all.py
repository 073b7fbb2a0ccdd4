"""`memdiag watch --all` with GPUs that are not there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

MIB = 1 << 20
SCENARIO = """\
device 0 name="NVIDIA A100" uuid=GPU-aaaa total=80G reserved=600M used=3000M
device 1 name="NVIDIA A100" uuid=GPU-bbbb total=80G reserved=600M used=9000M
row 0 compute pid=@{0} used=1000M
row 1 compute pid=@{0} used=2000M
row 1 compute pid=@{1} used=5000M
"""
PROGRAM = """\
import os, sys
open(sys.argv[1], "w").write(str(os.getpid()))
print("ready", flush=True)
sys.stdin.readline()
"""


def test_every_program_on_a_gpu_is_a_training_with_its_share(
    fake_nvml: Callable[..., Path], environ: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    # Under `memdiag run` each is a training of its own; else they would be parts of this process,
    # which is one where another test has imported torch.
    names = [str(tmp_path / "a"), str(tmp_path / "b")]
    run = [sys.executable, "-m", "memdiag", "run", "-q", "-o"]
    jobs = [
        subprocess.Popen(
            [*run, f"{name}.csv", "--", sys.executable, "-c", PROGRAM, name],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for name in names
    ]
    try:
        for job in jobs:
            assert job.stdout is not None
            assert job.stdout.readline() == "ready\n"
        ended = subprocess.run(
            [sys.executable, "-m", "memdiag", "watch", "--all", "--json", "--duration", "1s"],
            env=environ(fake_nvml(), SCENARIO.format(*names)),
            text=True,
            capture_output=True,
            check=False,
            timeout=60,
        )
    finally:
        for job in jobs:
            job.communicate("\n")
    assert ended.stderr == ""
    found = json.loads(ended.stdout)
    trainings = {one["pid"]: one for one in found["trainings"]}
    first, second = (trainings[int(Path(name).read_text())] for name in names)
    assert first["vram_bytes"] == 3000 * MIB
    assert first["gpus"] == [
        {"gpu": "GPU 0", "used_bytes": 1000 * MIB},
        {"gpu": "GPU 1", "used_bytes": 2000 * MIB},
    ]
    assert second["vram_bytes"] == 5000 * MIB
    memory = {one["name"]: one for one in found["memory"]}
    assert set(memory) == {"host RAM", "GPU 0", "GPU 1"}
    assert memory["GPU 1"]["used_bytes"] == 9000 * MIB
    assert memory["GPU 1"]["model"] == "NVIDIA A100"
