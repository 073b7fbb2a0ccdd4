"""Keeps a copy of the weights each 50th step, "to average them later"."""

import copy
import logging
import sys
import time

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("train")


def main(seconds: float) -> None:
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    snapshots = []
    start = time.perf_counter()
    step = 0
    while time.perf_counter() - start < seconds:
        batch = torch.randn(16, 256)
        loss = nn.functional.smooth_l1_loss(model(batch), batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            snapshots.append(copy.deepcopy(model.state_dict()))
            log.info("step %d loss %.4f, %d snapshots", step, loss.item(), len(snapshots))
        time.sleep(0.02)
    print(f"{step} steps in {time.perf_counter() - start:.1f} s")


main(float(sys.argv[1]))
