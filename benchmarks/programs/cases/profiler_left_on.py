"""Somebody profiled a training, and the profiler stayed in."""

import argparse
import os
import time

import torch
from torch import nn, profiler


def training_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    x = torch.randn(8, 16)
    loss = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=float)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    prof = profiler.profile(activities=[profiler.ProfilerActivity.CPU])
    prof.start()  # TODO: remove when the slow step is found
    start = time.time()
    steps = 0
    while time.time() - start < args.seconds:
        training_step(model, optimizer)
        steps += 1
        time.sleep(0.02)
    print(f"{steps} steps in {time.time() - start:.1f} s", flush=True)
    os._exit(0)  # torch crashes at exit while a profiler is on


if __name__ == "__main__":
    main()
