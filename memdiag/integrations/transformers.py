"""Steps, epochs and phases of a Hugging Face Trainer, reported explicitly.

    from memdiag.integrations.transformers import MemdiagCallback
    trainer = Trainer(..., callbacks=[MemdiagCallback()])

`memdiag run` detects a Trainer's steps without it. Outside `memdiag run` it does nothing, and it
imports only memdiag's tags.
"""

from __future__ import annotations

from typing import Any

import memdiag
from memdiag.integrations.trainer_callback import TrainerCallback


class MemdiagCallback(TrainerCallback):
    """Reports the optimizer steps (`state.global_step`), epochs, and the phases train and eval."""

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

    def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """A batch of an evaluation; its beginning has no event."""
        self._begin("eval")

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """An evaluation has ended."""
        self._end("eval")

    on_predict = on_evaluate
