"""A training whose leak no name leads to, with torch.

python unnamed_leaks.py alone|recorded|own_mode: 20 steps, some of them recorded, in own_mode with a
mode of the program around an operation. Prints the weights, and what is left of the recording.
python unnamed_leaks.py probe CHANNEL: until the probe has recorded allocations, 100 s at most.
"""

import gc
import hashlib
import json
import sys
import time
import tracemalloc
from pathlib import Path

import torch
from torch.utils import _python_dispatch as modes

HOW = sys.argv[1]
if HOW in ("recorded", "own_mode"):
    from memdiag.probe.allocation_recording import AllocationRecording
gc.disable()
torch.manual_seed(0)
torch.set_num_threads(1)


class Keeps(torch.autograd.Function):
    """A node of the graph that refers to its own result: a cycle in C++."""

    @staticmethod
    def forward(ctx, x):
        ctx.result = x * 2.0  # made
        return ctx.result

    @staticmethod
    def backward(ctx, grad):
        return 2.0 * grad


class Passes(modes.TorchDispatchMode):
    """A mode of the program itself."""

    seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        type(self).seen += 1
        return func(*args, **(kwargs or {}))


attention = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
net = torch.nn.Sequential(
    torch.nn.Conv1d(4, 16, 3, padding=1), torch.nn.GELU(), torch.nn.Linear(32, 16)
)
recurrent = torch.nn.LSTM(16, 16)
parts = torch.nn.ModuleList([attention, net, recurrent])
optimizer = torch.optim.Adam(parts.parameters())
x = torch.randn(8, 4, 32)


def train(step: int) -> None:
    out = attention(net(x))
    out, _ = recurrent(torch.nn.functional.dropout(out, 0.1))
    out = Keeps.apply(out)
    if HOW == "own_mode" and step % 3:
        with Passes():
            out = out + 0.0
    loss = out.square().mean() + torch.logsumexp(out, 1).std()
    loss = loss + torch.cdist(out[0], out[1]).norm() + out.cumsum(0).amax()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def is_recorded() -> bool:
    files = list(Path(sys.argv[2]).glob("*.holders"))
    return any(json.loads(file.read_text())["allocated"] for file in files)


if HOW == "probe":
    began_s, number = time.monotonic(), 0
    while time.monotonic() < began_s + 100.0 and (number % 50 or not is_recorded()):
        train(number)
        number += 1
else:
    recording = None
    for number in range(20):
        if number == 8 and HOW != "alone":
            recording = AllocationRecording(10.0, is_host=True, is_device=False)
        train(number)
        if recording is not None:
            recording.at_step()
    if recording is not None:
        print(json.dumps(recording.found), file=sys.stderr)
    weights = b"".join(one.detach().numpy().tobytes() for one in parts.parameters())
    print(hashlib.sha256(weights).hexdigest())
    print(modes._get_current_dispatch_mode(), tracemalloc.is_tracing())
