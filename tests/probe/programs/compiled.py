"""Compiles parts of a training, and prints how many graphs and operations that makes."""

import warnings

import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

warnings.simplefilter("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)


def report(name, counter):
    print(name, counter.frame_count, counter.op_count)
    torch._dynamo.reset()


def parts():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    return model, torch.optim.Adam(model.parameters())


model, optimizer = parts()
counter = CompileCounter()
forward = torch.compile(model, backend=counter)
for _ in range(3):
    optimizer.zero_grad()
    forward(torch.randn(4, 8)).sum().backward()
    optimizer.step()
report("forward", counter)

model, optimizer = parts()
counter = CompileCounter()
update = torch.compile(optimizer.step, backend=counter)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    update()
report("optimizer", counter)

model, optimizer = parts()
counter = CompileCounter()


def whole(x):
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    return loss


step = torch.compile(whole, backend=counter)
for _ in range(3):
    step(torch.randn(4, 8))
report("whole step", counter)

model, _ = parts()
torch.compile(model, backend="eager", fullgraph=True)(torch.randn(4, 8))
print("full graph")
