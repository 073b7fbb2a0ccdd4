"""Steps, epochs and phases of a Lightning Trainer, told explicitly.

    from memdiag.integrations.lightning import MemdiagCallback
    trainer = Trainer(..., callbacks=[MemdiagCallback()])

`memdiag run` sees a Trainer's steps without it; this is for those who prefer a line of code. It
does nothing where memdiag is not watching, and imports nothing but memdiag's tags. For both
packages, `lightning` and `pytorch_lightning`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import memdiag
from memdiag.integrations.spans import Spans


class MemdiagCallback:
    """Tells the optimizer's steps (`trainer.global_step`), epochs, and the phases train and eval.

    Not a subclass of `Callback`, so that nothing has to be imported for it: a Trainer asks for
    methods by their names, and every one that is not here does nothing.
    """

    state_key = "MemdiagCallback"

    def __init__(self) -> None:
        self._spans = Spans()
        self._step = 0

    def on_train_start(self, trainer: Any, module: Any) -> None:
        """The training begins or goes on, after the check of the validation's first batches."""
        self._step = trainer.global_step
        self._spans.begin("train")

    def on_train_end(self, trainer: Any, module: Any) -> None:
        """The training has ended."""
        self._spans.end("train")

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        """An epoch begins; the first is `trainer.current_epoch` 0."""
        memdiag.counter("epoch", trainer.current_epoch + 1)

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any, **__: Any) -> None:
        """A batch is done; several may make one step of the optimizer."""
        if trainer.global_step != self._step:
            self._step = trainer.global_step
            memdiag.step(self._step)

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        """An evaluation begins."""
        self._spans.begin("eval")

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        """An evaluation has ended."""
        self._spans.end("eval")

    on_test_start = on_predict_start = on_validation_start
    on_test_end = on_predict_end = on_validation_end

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        """Nothing to prepare."""

    def teardown(self, trainer: Any, module: Any, stage: str) -> None:
        """Nothing to take down."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing of this goes into a checkpoint."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing comes out of one."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Hooks of this and coming versions that mean nothing here."""
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(name)


def _nothing(*_: Any, **__: Any) -> None:
    return None
