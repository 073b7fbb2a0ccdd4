"""Each term keeps what its backward pass would need."""

import torch
from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model, total = Model(), torch.zeros(())
    weights = torch.ones(8192, requires_grad=True)
    for step in clock.steps():
        model.train(batch())
        total = total + torch.tanh(weights * step).sum()


if __name__ == "__main__":
    run(train)
