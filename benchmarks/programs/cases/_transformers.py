"""A small language model under Transformers' Trainer, for so many seconds."""

from __future__ import annotations

import os
import tempfile
import time
import warnings

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
warnings.simplefilter("ignore")

import torch  # noqa: E402
from torch.utils.data import IterableDataset  # noqa: E402
from transformers import (  # noqa: E402
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


class Tokens(IterableDataset):
    """Random texts until the time is over."""

    def __init__(self, seconds: float, length: int = 32) -> None:
        self.seconds, self.length = seconds, length

    def __iter__(self):
        until = time.time() + self.seconds
        while time.time() < until:
            ids = torch.randint(0, 200, (self.length,))
            time.sleep(0.005)
            yield {"input_ids": ids, "labels": ids}


class Stops(TrainerCallback):
    """Ends the training in time."""

    def __init__(self, seconds: float) -> None:
        self.until = time.time() + seconds

    def on_step_end(self, args: object, state: object, control: object, **_: object) -> None:
        control.should_training_stop = time.time() > self.until


def model() -> GPT2LMHeadModel:
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=200, n_positions=32, n_embd=32, n_layer=2, n_head=2)
    )


def train(seconds: float, kind: type[Trainer] = Trainer, callbacks: tuple = ()) -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=1_000_000,
            per_device_train_batch_size=4,
            report_to=[],
            save_strategy="no",
            logging_steps=100,
            disable_tqdm=True,
            use_cpu=True,
        )
        began = time.time()
        trainer = kind(
            model=model(),
            args=arguments,
            train_dataset=Tokens(seconds + 5),
            callbacks=[Stops(seconds), *callbacks],
        )
        trainer.train()
    print(f"{trainer.state.global_step} steps in {time.time() - began:.1f} s")
