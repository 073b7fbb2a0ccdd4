"""A sweep over widths in one process, which keeps the scores and the best model alone."""

import sys
import time

import torch
from torch import nn


def trial(width: int, until: float) -> tuple[float, dict, int]:
    net = nn.Sequential(
        nn.Linear(32, width), nn.Tanh(), nn.Linear(width, width), nn.Linear(width, 1)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
    taken = 0
    for _ in range(30):
        x = torch.randn(32, 32)
        loss = nn.functional.smooth_l1_loss(net(x)[:, 0], x.amax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        taken += 1
        time.sleep(0.035)
        if time.time() > until:
            break
    return loss.item(), net.state_dict(), taken


def main() -> None:
    torch.set_num_threads(1)
    start = time.time()
    until = start + float(sys.argv[1])
    widths = [64, 128, 256, 384, 512]
    scores, best, steps, number = {}, (float("inf"), {}), 0, 0
    while time.time() < until:
        width = widths[number % len(widths)]
        score, weights, taken = trial(width, until)
        scores.setdefault(width, []).append(score)
        best = min(best, (score, weights), key=lambda pair: pair[0])
        steps += taken
        number += 1
    for width, values in scores.items():
        print(f"{width:4d}: {sum(values) / len(values):.4f}")
    print(f"{steps} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
