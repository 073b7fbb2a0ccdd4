"""Steps, epochs and phases of a Hugging Face Trainer, told explicitly.

    from memdiag.integrations.transformers import MemdiagCallback
    trainer = Trainer(..., callbacks=[MemdiagCallback()])

`memdiag run` sees a Trainer's steps without it; this is for those who prefer a line of code. It
does nothing where memdiag is not watching, and imports nothing but memdiag's tags.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import memdiag
from memdiag.integrations.spans import Spans


class MemdiagCallback:
    """Tells the optimizer's steps (`state.global_step`), epochs, and the phases train and eval.

    Not a subclass of `TrainerCallback`, so that nothing has to be imported for it: a Trainer asks
    for methods by their names, and every one that is not here does nothing.
    """

    def __init__(self) -> None:
        self._spans = Spans()

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The training begins."""
        self._spans.begin("train")

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The training has ended."""
        self._spans.end("train")

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """An epoch begins; `state.epoch` is how many are done, with fractions."""
        memdiag.counter("epoch", int(state.epoch or 0) + 1)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """An optimizer step has ended, however many batches it took."""
        memdiag.step(state.global_step)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """A batch of an evaluation; nobody says when one begins."""
        self._spans.begin("eval")

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """An evaluation has ended."""
        self._spans.end("eval")

    on_predict = on_evaluate

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Events of this and coming versions that mean nothing here."""
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(name)


def _nothing(*_: Any, **__: Any) -> None:
    return None
