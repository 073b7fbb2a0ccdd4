"""Steps, epochs and phases of a Hugging Face Trainer, reported explicitly; saving and stopping it
under memory pressure.

    from memdiag.integrations.transformers import MemdiagCallback
    trainer = Trainer(..., callbacks=[MemdiagCallback(save_on="critical")])

`memdiag run` detects a Trainer's steps without it. Outside `memdiag run` it does nothing, and it
imports only memdiag's tags.
"""

from __future__ import annotations

from typing import Any

import memdiag
from memdiag.integrations.pressure import PressureFlags
from memdiag.integrations.trainer_callback import TrainerCallback


class MemdiagCallback(TrainerCallback):
    """Reports the optimizer steps (`state.global_step`), epochs, and the phases train and eval.

    Has the Trainer save a checkpoint, or stop, once memory reaches a level.
    """

    def __init__(self, *, save_on: str | None = None, stop_on: str | None = None) -> None:
        """save_on, stop_on: "warn", "critical" or "leak"; None for never."""
        super().__init__()
        self._flags = PressureFlags(save_on, stop_on)

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The training begins."""
        self._begin("train")

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The training has ended."""
        self._end("train")

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """An epoch begins; `state.epoch` is the number of finished epochs, with fractions."""
        memdiag.counter("epoch", int(state.epoch or 0) + 1)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """An optimizer step has ended, regardless of how many batches it took."""
        memdiag.step(state.global_step)
        save, stop = self._flags.take()
        control.should_save = control.should_save or save
        control.should_training_stop = control.should_training_stop or stop

    def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """A batch of an evaluation; its beginning has no event."""
        self._begin("eval")

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """An evaluation has ended."""
        self._end("eval")

    on_predict = on_evaluate
