"""Steps come in bursts, with pauses of different lengths between; the last outputs are kept."""

import random
import sys
import time

import torch
from torch import nn

rng = random.Random(7)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(50, 50), nn.Tanh(), nn.Linear(50, 50))
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
outputs = []
t0, steps = time.time(), 0
while time.time() - t0 < float(sys.argv[1]):
    for _ in range(rng.randint(5, 60)):
        x = torch.randn(100, 50)
        y = model(x)
        opt.zero_grad()
        (y - x).pow(2).mean().backward()
        opt.step()
        outputs.append(y.data)
        steps += 1
        time.sleep(0.01)
    time.sleep(rng.choice([0.1, 0.4, 1.5]))  # "wait for data"
print(f"{steps} steps in {time.time() - t0:.1f} s")
