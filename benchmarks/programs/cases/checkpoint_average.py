"""Four batches per step under a one-cycle schedule; the mean of the last checkpoints is tried."""

import sys
import time
from collections import deque

import torch
from torch import nn

ACCUMULATE, EACH = 4, 4


def mean_of(checkpoints: deque) -> dict[str, torch.Tensor]:
    return {
        name: sum(checkpoint[name] for checkpoint in checkpoints) / len(checkpoints)
        for name in checkpoints[0]
    }


def main() -> None:
    seconds = float(sys.argv[1])
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(40, 160), nn.SiLU(), nn.Linear(160, 160), nn.Linear(160, 1))
    trial = nn.Sequential(nn.Linear(40, 160), nn.SiLU(), nn.Linear(160, 160), nn.Linear(160, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=100_000)
    checkpoints: deque = deque(maxlen=int(seconds * 0.7))
    start, step = time.time(), 0
    while time.time() - start < seconds:
        due = time.time() + 0.08
        for _ in range(ACCUMULATE):
            x = torch.randn(16, 40)
            loss = nn.functional.mse_loss(model(x)[:, 0], x.square().mean(1))
            (loss / ACCUMULATE).backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        step += 1
        if step % EACH == 0:
            checkpoints.append({k: v.detach().clone() for k, v in model.state_dict().items()})
        if step % 100 == 0:
            trial.load_state_dict(mean_of(checkpoints))
            with torch.no_grad():
                x = torch.randn(256, 40)
                error = nn.functional.mse_loss(trial(x)[:, 0], x.square().mean(1))
            print(f"step {step}: lr {schedule.get_last_lr()[0]:.2e}, mean model {error:.4f}")
        time.sleep(max(0.0, due - time.time()))
    print(f"{step} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
