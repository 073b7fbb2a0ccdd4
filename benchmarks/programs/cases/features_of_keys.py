"""A cache by key, of which there are so many: new ones become rarer."""

import torch
from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model, features = Model(), {}
    for step in clock.steps():
        model.train(batch())
        key = step * 7919 % 300 if clock.done < 1 / 3 else step % 300
        features.setdefault(key, torch.ones(8000))


if __name__ == "__main__":
    run(train)
