"""Steps of a Keras fit, reported explicitly, and saving and stopping it under memory pressure.

    from memdiag.integrations.keras import MemdiagCallback
    model.fit(..., callbacks=[MemdiagCallback("emergency.keras", save_on="critical")])

`memdiag run` detects the steps without it. Outside `memdiag run` it does nothing.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import memdiag
from memdiag.integrations.pressure import PressureFlags
from memdiag.integrations.trainer_callback import TrainerCallback


class MemdiagCallback(TrainerCallback):
    """Reports steps and the phase train. Saves the model, and stops the fit, at a level."""

    def __init__(
        self,
        path: str | PathLike[str] = "",
        *,
        save_on: str | None = None,
        stop_on: str | None = None,
    ) -> None:
        """path: where `model.save` writes. save_on, stop_on: "warn", "critical" or "leak"; None for
        never.
        """
        super().__init__()
        self._path = path
        self._flags = PressureFlags(save_on, stop_on)
        self._batches = self._before = 0
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_model(self, model: Any) -> None:
        """The model that is fitted."""
        self.model = model

    def set_params(self, params: dict[str, Any]) -> None:
        """The parameters of the fit."""
        self.params = params

    def on_train_begin(self, logs: Any = None) -> None:
        """A fit begins."""
        self._begin("train")

    def on_train_end(self, logs: Any = None) -> None:
        """A fit has ended."""
        self._end("train")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """A pass over the data begins: batches are counted from 0 again."""
        self._before = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Batch `batch`, from 0 in each epoch, and those since the last call have ended."""
        self._batches += int(batch) + 1 - self._before
        self._before = int(batch) + 1
        memdiag.step(self._batches)
        save, stop = self._flags.take()
        if save:
            self.model.save(self._path)
        if stop:
            self.model.stop_training = True
