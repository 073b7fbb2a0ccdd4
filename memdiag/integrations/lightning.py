"""Steps, epochs and phases of a Lightning Trainer, reported explicitly; saving and stopping it
under memory pressure.

    from memdiag.integrations.lightning import MemdiagCallback
    trainer = Trainer(..., callbacks=[MemdiagCallback("emergency.ckpt", save_on="critical")])

`memdiag run` detects a Trainer's steps without it. Outside `memdiag run` it does nothing, and it
imports only memdiag's tags. For both packages, `lightning` and `pytorch_lightning`.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import memdiag
from memdiag.integrations.pressure import PressureFlags
from memdiag.integrations.trainer_callback import TrainerCallback


class MemdiagCallback(TrainerCallback):
    """Reports the optimizer steps (`trainer.global_step`), epochs, and phases train and eval.

    Saves a checkpoint, or stops the training, once memory reaches a level.
    """

    state_key = "MemdiagCallback"

    def __init__(
        self,
        path: str | PathLike[str] = "",
        *,
        save_on: str | None = None,
        stop_on: str | None = None,
    ) -> None:
        """path: where `trainer.save_checkpoint` writes. save_on, stop_on: "warn", "critical" or
        "leak"; None for never.
        """
        super().__init__()
        self._path = path
        self._flags = PressureFlags(save_on, stop_on)
        self._step = 0

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """The training begins or continues, after the check of the first validation batches."""
        self._step = trainer.global_step
        self._begin("train")

    def on_train_end(self, trainer: Any, module: Any) -> None:
        """The training has ended."""
        self._end("train")

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        """An epoch begins; the first is `trainer.current_epoch` 0."""
        memdiag.counter("epoch", trainer.current_epoch + 1)

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any, **__: Any) -> None:
        """A batch is done; several may make one optimizer step."""
        if trainer.global_step != self._step:
            self._step = trainer.global_step
            memdiag.step(self._step)
            save, stop = self._flags.take()
            if save:
                trainer.save_checkpoint(self._path)
            trainer.should_stop = trainer.should_stop or stop

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        """An evaluation begins."""
        self._begin("eval")

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        """An evaluation has ended."""
        self._end("eval")

    on_test_start = on_predict_start = on_validation_start
    on_test_end = on_predict_end = on_validation_end

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        """Nothing to prepare."""

    def teardown(self, trainer: Any, module: Any, stage: str) -> None:
        """Nothing to clean up."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing goes into a checkpoint."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing is restored from a checkpoint."""
