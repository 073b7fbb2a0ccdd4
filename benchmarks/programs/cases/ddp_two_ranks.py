"""DistributedDataParallel over gloo: two ranks on one machine train the same model."""

import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank: int, seconds: float, port: int) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64)))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    start, steps = time.time(), 0
    over = torch.zeros(1)
    while not over.item():
        x = torch.randn(32, 64)
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), x)
        loss.backward()
        optimizer.step()
        steps += 1
        over.fill_(time.time() - start > seconds)
        dist.all_reduce(over)
        time.sleep(0.03)
    if rank == 0:
        print(f"{steps} steps in {time.time() - start:.1f} s, {loss.item():.2f}", flush=True)
    dist.destroy_process_group()


def main() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(train, args=(float(sys.argv[1]), port), nprocs=2)


if __name__ == "__main__":
    main()
