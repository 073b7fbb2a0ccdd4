"""Loads half a dozen large packages and then trains for some seconds only."""

import sys
import time

began = time.time()

import numpy as np  # noqa: E402
import scipy.optimize  # noqa: E402
import scipy.stats  # noqa: E402
import torch  # noqa: E402
import torch.utils.data  # noqa: E402
from torch import nn  # noqa: E402


def main() -> None:
    torch.set_num_threads(1)
    seconds = min(float(sys.argv[1]), 12.0)
    model = nn.Linear(20, 2)
    optimizer = torch.optim.Adam(model.parameters())
    steps = 0
    start = time.time()
    while time.time() - start < seconds:
        x = torch.from_numpy(np.random.default_rng(steps).normal(size=(16, 20)).astype("float32"))
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps == 20:
            fit = scipy.optimize.minimize_scalar(lambda v: (v - 2) ** 2)
            print(f"{fit.x:.2f} {scipy.stats.norm.cdf(fit.x):.3f}, {time.time() - began:.1f} s")
        time.sleep(0.04)
    print(f"{steps} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
