"""Each 40th step an evaluation takes more for a moment."""

import torch
from _training import Clock, Model, batch, run


def train(clock: Clock) -> None:
    model = Model()
    for step in clock.steps():
        model.train(batch())
        if step % 40 == 0:
            torch.cat(model.evaluate(100))


if __name__ == "__main__":
    run(train)
