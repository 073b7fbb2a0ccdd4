"""A training whose whole step is compiled; every step keeps a tensor."""

import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Linear(64, 64)
optimizer = torch.optim.Adam(model.parameters())
kept = []


@torch.compile(backend="eager")
def train(x):
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    return loss


for _ in range(200):
    train(torch.randn(4, 64))
    kept.append(torch.zeros(20_000))
    time.sleep(0.01)
print(float(model.weight.sum()))
