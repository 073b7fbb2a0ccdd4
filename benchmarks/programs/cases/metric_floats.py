"""Writes down four floats per step, as everybody does, and logs to a file."""

import logging
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import torch
from torch import nn


def main() -> None:
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="training-"))
    logging.basicConfig(filename=folder / "train.log", level=logging.DEBUG)
    model = nn.Sequential(nn.Linear(30, 60), nn.SiLU(), nn.Linear(60, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history: dict[str, list[float]] = defaultdict(list)
    start = time.time()
    while time.time() - start < float(sys.argv[1]):
        x = torch.randn(50, 30)
        prediction = model(x)
        loss = (prediction.squeeze() - x[:, 0]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        history["loss"].append(loss.item())
        history["norm"].append(norm.item())
        history["mean"].append(prediction.mean().item())
        history["std"].append(prediction.std().item())
        logging.debug("step %d: %r", len(history["loss"]), loss.item())
        time.sleep(0.02)
    print(f"{len(history['loss'])} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
