"""A log handler that keeps every record, meant for a summary at the end."""

import logging
import sys
import time

import torch
from torch import nn


class Summary(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def report(self) -> str:
        return f"{len(self.records)} messages"


logger = logging.getLogger("trainer")
logger.setLevel(logging.DEBUG)
summary = Summary()
logger.addHandler(summary)


def train(seconds: float) -> int:
    model = nn.Linear(24, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    end, step = time.time() + seconds, 0
    while time.time() < end:
        x = torch.randn(12, 24)
        loss = model(x).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        for name in ("loss", "lr", "norm", "speed", "queue", "memory", "epoch", "batch"):
            logger.debug("%s at %d", name, step + 1000)
        time.sleep(0.02)
    return step


if __name__ == "__main__":
    torch.set_num_threads(1)
    t = time.time()
    print(f"{train(float(sys.argv[1]))} steps in {time.time() - t:.1f} s")
    print(summary.report())
