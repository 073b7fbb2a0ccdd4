"""A callback that copies the embeddings after each step, for an animation."""

import sys

from _transformers import train
from transformers import TrainerCallback


class Animation(TrainerCallback):
    def __init__(self) -> None:
        self.frames = []

    def on_step_end(self, args, state, control, model=None, **_):
        self.frames.append(model.transformer.wte.weight.detach().numpy().copy())


if __name__ == "__main__":
    train(float(sys.argv[1]), callbacks=(Animation(),))
