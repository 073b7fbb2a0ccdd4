"""A student learns from the mean of its own weights; the teacher's answers are kept per sample."""

import copy
import sys
import time

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

CLASSES, BATCH = 200, 16


class MeanTeacher(nn.Module):
    def __init__(self, student: nn.Module, decay: float = 0.999) -> None:
        super().__init__()
        self.net = copy.deepcopy(student).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def follow(self, student: nn.Module) -> None:
        for kept, new in zip(self.net.parameters(), student.parameters(), strict=True):
            kept.lerp_(new, 1 - self.decay)


def main() -> None:
    seconds = float(sys.argv[1])
    torch.manual_seed(1)
    torch.set_num_threads(1)
    samples = torch.randn(BATCH * int(seconds * 2), 48)
    student = nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, CLASSES))
    teacher = MeanTeacher(student)
    optimizer = torch.optim.AdamW(student.parameters(), lr=3e-4)
    answers: dict[int, torch.Tensor] = {}
    start, step = time.time(), 0
    while time.time() - start < seconds:
        due = time.time() + 0.06
        first = step * BATCH % len(samples)
        x = samples[first : first + BATCH]
        if first not in answers:
            with torch.no_grad():
                noisy = [teacher.net(x + 0.1 * torch.randn_like(x)) for _ in range(4)]
            answers[first] = torch.stack(noisy).softmax(-1)
        soft = answers[first].mean(0)
        loss = F.kl_div(student(x).log_softmax(-1), soft, reduction="batchmean")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        teacher.follow(student)
        step += 1
        time.sleep(max(0.0, due - time.time()))
    print(f"{step} steps in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
