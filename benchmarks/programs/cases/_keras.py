"""A small Keras training that runs for a given time, with the installed backend."""

from __future__ import annotations

import os
import time

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np


class Batches(keras.utils.PyDataset):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        time.sleep(0.02)
        x = np.random.default_rng(index).normal(size=(32, 48)).astype("float32")
        return x, x.sum(axis=1, keepdims=True)


class Until(keras.callbacks.Callback):
    """Ends the training in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.began, self.seconds, self.steps = time.time(), seconds, 0

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        self.steps += 1
        if time.time() - self.began > self.seconds:
            self.model.stop_training = True


def network() -> keras.Model:
    model = keras.Sequential(
        [keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1, name="out")]
    )
    model.compile(optimizer="adam", loss="mse")
    return model


def fit(seconds: float, *callbacks: keras.callbacks.Callback) -> None:
    if keras.backend.backend() == "torch":
        import torch

        torch.set_num_threads(1)
    until = Until(seconds)
    network().fit(Batches(), epochs=10_000, verbose=0, callbacks=[until, *callbacks])
    print(f"{until.steps} steps in {time.time() - until.began:.1f} s")
