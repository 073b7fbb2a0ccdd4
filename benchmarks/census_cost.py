"""Time of a census of memory where a program runs out of it, and of one with the objects by type.

    python benchmarks/census_cost.py [REPEATS]

Prints CPU and wall milliseconds of REPEATS censuses (5 by default): the median and the most. The
bar: 200 ms of CPU time at the crash. The programs run with the probe, in processes of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from memdiag.capture.probelink.channel import prepare

BAR_MS = 200.0
PROGRAMS = {
    "torch, small training, 3,000 kept losses": """
net = torch.nn.Linear(64, 64)
losses = [net(torch.randn(8, 64)).pow(2).mean() for _ in range(3000)]
""",
    "torch, transformer of 60 layers, Adam": """
layer = torch.nn.TransformerEncoderLayer(64, 4, 128)
net = torch.nn.TransformerEncoder(layer, 60)
opt = torch.optim.Adam(net.parameters())
net(torch.randn(4, 2, 64)).sum().backward()
opt.step()
""",
    "torch, 50,000 tensors in a list of dictionaries": """
outs = [{"p": torch.zeros(4), "q": torch.zeros(5)} for _ in range(25_000)]
""",
    "torch, 20,000 tensors that no name reaches": """
class Node: pass
import gc
gc.disable()
for _ in range(20_000):
    node = Node()
    node.me, node.data = node, torch.zeros(4)
""",
    "torch, 1,000,000 Python objects": "table = [[i] for i in range(1_000_000)]",
    "torch, 5,000,000 Python objects": "table = [[i] for i in range(5_000_000)]",
    "numpy, 100,000 arrays": "import numpy\ncache = {i: numpy.zeros(9) for i in range(100_000)}",
}
TORCH = "import torch\ntorch.set_num_threads(1)\n"
MEASURE = """
import sys, time
sampler = sys.modules["_memdiag_probe"].listener.take_census.__self__
def measured(take):
    wall, cpu = time.monotonic(), time.thread_time()
    take()
    return time.monotonic() - wall, time.thread_time() - cpu
for _ in range(REPEATS):
    print(*measured(sampler.out_of_memory), *measured(sampler.take_now))
"""


def times(program: str, repeats: int) -> list[list[float]]:
    """Rows of seconds: wall and CPU at the crash, wall and CPU with types."""
    measure = MEASURE.replace("REPEATS", str(repeats))
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o700)  # noqa: PTH101
        done = subprocess.run(
            [sys.executable, "-c", program + measure],
            env=prepare(os.environ, Path(directory)),
            capture_output=True,
            text=True,
            check=True,
        )
    return [list(map(float, line.split())) for line in done.stdout.splitlines()]


def main() -> int:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    worst_ms = 0.0
    print(f"{'program':50} {'at the crash: CPU':>20} {'wall':>14} {'with types: CPU':>18}")
    for name, program in PROGRAMS.items():
        rows = times((TORCH if name.startswith("torch") else "") + program, repeats)
        wall, cpu, _, full = ([1e3 * row[at] for row in rows] for at in range(4))
        shown = [f"{median(one):.0f} ({max(one):.0f}) ms" for one in (cpu, wall, full)]
        print(f"{name:50} {shown[0]:>20} {shown[1]:>14} {shown[2]:>18}")
        worst_ms = max(worst_ms, median(cpu))
    print(f"largest median of CPU time at the crash: {worst_ms:.0f} ms (bar: {BAR_MS:.0f} ms)")
    return int(worst_ms > BAR_MS)


if __name__ == "__main__":
    sys.exit(main())
