"""The batch doubles at three milestones, which all lie in the first half."""

import sys
import time

import torch
from torch import nn

MILESTONES = {0.0: 64, 0.1: 128, 0.2: 256, 0.35: 512}


def batch_size(progress: float) -> int:
    return max(size for at, size in MILESTONES.items() if progress >= at)


torch.set_num_threads(1)
seconds = float(sys.argv[1])
model = nn.Sequential(
    nn.Conv1d(1, 16, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 2)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, nesterov=True, momentum=0.9)
start = time.time()
n = 0
while (elapsed := time.time() - start) < seconds:
    inputs = torch.randn(batch_size(elapsed / seconds), 1, 64)
    labels = torch.randint(0, 2, (len(inputs),))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
    n += 1
    time.sleep(0.03)
print(f"{n} steps in {elapsed:.1f} s")
