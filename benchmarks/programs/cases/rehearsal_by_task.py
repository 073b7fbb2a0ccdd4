"""Continual learning: samples of every earlier task are kept and replayed, and tasks go on."""

import argparse
import random
import time

import torch
from torch import nn

TASK_STEPS, PER_TASK, SIZE = 40, 160, 1024


class Rehearsal:
    """A reservoir per task."""

    def __init__(self) -> None:
        self.tasks: list[list[tuple[torch.Tensor, int]]] = []
        self.seen = 0

    def new_task(self) -> None:
        self.tasks.append([])
        self.seen = 0

    def add(self, x: torch.Tensor, label: int) -> None:
        self.seen += 1
        kept = self.tasks[-1]
        if len(kept) < PER_TASK:
            kept.append((x, label))
        elif (at := random.randrange(self.seen)) < PER_TASK:
            kept[at] = (x, label)

    def sample(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = [random.choice(random.choice(self.tasks)) for _ in range(count)]
        return torch.stack([x for x, _ in chosen]), torch.tensor([y for _, y in chosen])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=float)
    args = parser.parse_args()
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(SIZE, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    memory = Rehearsal()
    start, step = time.time(), 0
    while time.time() - start < args.seconds:
        due = time.time() + 0.06
        if step % TASK_STEPS == 0:
            memory.new_task()
            centers = torch.randn(10, SIZE)
        labels = torch.randint(0, 10, (8,))
        inputs = centers[labels] + 0.3 * torch.randn(8, SIZE)
        for x, label in zip(inputs, labels.tolist(), strict=True):
            memory.add(x.clone(), label)
        old_inputs, old_labels = memory.sample(8)
        logits = net(torch.cat([inputs, old_inputs]))
        loss = nn.functional.cross_entropy(logits, torch.cat([labels, old_labels]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        time.sleep(max(0.0, due - time.time()))
    print(f"{len(memory.tasks)} tasks")
    print(f"{step} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
