"""The hooks in torch: what it offers for the purpose, and five functions wrapped.

No hook on modules' forward: it costs 6 us per module, and breaks compiled graphs apart. A wrapper
calls what it wraps with the very same arguments, returns and raises what that does, and nothing
of its own.
"""

from __future__ import annotations

import sys
import weakref
from functools import wraps
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .training import Training

# A module is "the model" when it holds this share of what the optimizers train; a frozen
# backbone or the batch norms, put into evaluation mode alone, do not.
_MODEL_SHARE = 0.5


class Hooks:
    """Connects torch to a Training. What a version of torch lacks is left out."""

    def __init__(self, torch: Any, training: Training) -> None:
        self._torch = torch
        self._training = training
        self._pulse = training.pulse
        self._optimizers: dict[int, Any] = {}
        self._trained: frozenset[int] | None = None
        self._scaled: set[int] = set()
        self._undo: list[Callable[[], None]] = []

    def install(self) -> list[str]:
        """Set all hooks. Returns the names of those that this torch has no place for."""
        parts: dict[str, Callable[[], None]] = {
            "optimizer": self._hook_optimizers,
            "backward": self._hook_backward,
            "mode": self._hook_mode,
            "data": self._hook_data,
            "checkpoint": self._hook_save,
            "scaler": self._hook_scaler,
        }
        missing = []
        for name, hook in parts.items():
            try:
                hook()
            except Exception:
                missing.append(name)
        return missing

    def remove(self) -> None:
        """Leave torch as it was; what somebody has wrapped since stays, and does nothing."""
        for undo in self._undo:
            try:
                undo()
            except Exception:
                continue

    def _wrap(self, owner: Any, name: str, **around: Any) -> None:
        self._undo.append(_wrap(owner, name, **around))

    # -- optimizers ----------------------------------------------------------------------------

    def _hook_optimizers(self) -> None:
        module = sys.modules["torch.optim.optimizer"]  # torch.optim hides it
        pulse, training, stepped = self._pulse, self._training, self._stepped
        identity = id  # found with one look, not two

        # Functions and no methods, and little in them: this is for every step.
        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            try:
                if pulse.sole is None:
                    training.optimizer_begins()
            except Exception:
                return

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            try:
                reached = pulse.reached + 1
                if reached < pulse.look_at and identity(optimizer) == pulse.sole:
                    pulse.reached = reached
                else:
                    stepped(optimizer)
            except Exception:
                return

        self._undo.append(module.register_optimizer_step_pre_hook(before).remove)
        self._undo.append(module.register_optimizer_step_post_hook(after).remove)
        optimizer = module.Optimizer
        self._wrap(optimizer, "__init__", before=_nothing, after=self._optimizer_made)

    def _stepped(self, optimizer: Any) -> None:
        key = id(optimizer)
        if key == self._pulse.sole:
            self._training.sole_stepped(monotonic())
            return
        self._scaled.discard(key)
        self._know(optimizer)
        self._training.optimizer_ended(key)

    def _optimizer_made(self, _: Any, args: tuple[Any, ...]) -> None:
        self._know(args[0])
        self._training.optimizer_made(id(args[0]))

    def _know(self, optimizer: Any) -> None:
        key = id(optimizer)
        if key in self._optimizers:
            return

        def forget(_: Any) -> None:
            try:
                self._trained = None
                del self._optimizers[key]
                self._training.optimizer_gone(key)
            except Exception:
                return

        self._trained = None
        self._optimizers[key] = weakref.ref(optimizer, forget)

    def _hook_scaler(self) -> None:
        """A gradient scaler leaves out steps whose gradients overflow: iterations all the same."""
        loaded = sys.modules
        module = loaded.get("torch.amp.grad_scaler") or loaded["torch.cuda.amp.grad_scaler"]
        self._wrap(module.GradScaler, "step", before=self._scaled_begins, after=self._scaled_ended)

    def _scaled_begins(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, int]:
        key = id(args[1] if len(args) > 1 else kwargs["optimizer"])
        self._scaled.add(key)
        return key, self._pulse.reached

    def _scaled_ended(self, before: tuple[int, int], _: tuple[Any, ...]) -> None:
        key, reached = before
        if key in self._scaled:
            self._scaled.discard(key)
            if self._pulse.reached == reached:
                self._training.optimizer_ended(key)

    # -- backward, mode, data, checkpoints -----------------------------------------------------

    def _hook_backward(self) -> None:
        owner, training, pulse = self._torch.autograd, self._training, self._pulse
        original = owner.backward

        @wraps(original)  # what `_wrap` does, with fewer calls: this is for every step
        def backward(*args: Any, **kwargs: Any) -> Any:
            try:
                unheard = pulse.sole is not None
                if not unheard:
                    training.backward_begins()
            except Exception:
                unheard = True
            if unheard:
                return original(*args, **kwargs)
            try:
                return original(*args, **kwargs)
            finally:
                try:  # noqa: SIM105
                    training.backward_ended()
                except Exception:
                    pass

        def heed(everything: bool) -> None:
            # Even a function that only passes on is felt: not there while nobody listens.
            before, after = (original, backward) if everything else (backward, original)
            _put_back(owner, "backward", before, after)

        def leave() -> None:
            pulse.when_followed(_nothing)
            heed(False)

        owner.backward = backward
        pulse.when_followed(heed)
        self._undo.append(leave)

    def _hook_mode(self) -> None:
        # Not `train`: that recurses through all modules, once per step in some trainers.
        self._wrap(self._torch.nn.Module, "eval", before=_nothing, after=self._mode_set)

    def _mode_set(self, _: Any, args: tuple[Any, ...]) -> None:
        model = args[0]
        if self._is_model(model):
            reference = weakref.ref(model)
            self._training.evaluation_begins(lambda: not getattr(reference(), "training", True))

    def _is_model(self, module: Any) -> bool:
        """Whether `module` is most of what is trained; anything with weights if nothing is."""
        if self._trained is None:
            self._trained = frozenset(id(one) for one in self._trained_parameters())
        if not self._trained:
            return next(module.parameters(), None) is not None
        held = sum(id(parameter) in self._trained for parameter in module.parameters())
        return held >= _MODEL_SHARE * len(self._trained)

    def _trained_parameters(self) -> list[Any]:
        found = []
        for reference in list(self._optimizers.values()):
            for group in getattr(reference(), "param_groups", ()):
                found += group["params"]
        return found

    def _hook_data(self) -> None:
        loader = self._torch.utils.data.dataloader._BaseDataLoaderIter
        training, pulse = self._training, self._pulse
        fetch = loader.__next__

        @wraps(fetch)
        def __next__(self: Any) -> Any:  # noqa: N807
            try:
                unheard = pulse.sole is not None and self._num_yielded > 0
                if not unheard:
                    training.fetch_begins()
            except Exception:
                unheard = True
            if unheard:
                return fetch(self)
            got_one = False
            begins = None
            try:
                if self._num_yielded == 0:
                    begins = id(self._dataset)
            except Exception:
                begins = None
            try:
                batch = fetch(self)
                got_one = True
                return batch
            finally:
                try:
                    training.fetch_ended(got_one=got_one, begins=begins if got_one else None)
                except Exception:
                    got_one = False

        loader.__next__ = __next__
        self._undo.append(lambda: _put_back(loader, "__next__", __next__, fetch))

    def _hook_save(self) -> None:
        training = self._training
        self._wrap(
            self._torch,
            "save",
            before=lambda *_: training.checkpoint_begins(),
            after=lambda before, _: training.checkpoint_ended(before),
            also_on_error=True,
        )


def _nothing(*_: Any) -> None:
    return None


def _put_back(owner: Any, name: str, ours: Any, original: Any) -> None:
    if getattr(owner, name) is ours:
        setattr(owner, name, original)


def _wrap(
    owner: Any,
    name: str,
    *,
    before: Callable[[tuple[Any, ...], dict[str, Any]], Any],
    after: Callable[[Any, tuple[Any, ...]], None],
    also_on_error: bool = False,
) -> Callable[[], None]:
    """Have `before(args, kwargs)` and `after(its result, args)` called around `owner.name`.

    Returns what undoes it.
    """
    original = getattr(owner, name)

    @wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            token = before(args, kwargs)
        except Exception:
            return original(*args, **kwargs)
        done = False
        try:
            result = original(*args, **kwargs)
            done = True
            return result
        finally:
            if done or also_on_error:
                try:
                    after(token, args)
                except Exception:
                    done = False

    setattr(owner, name, wrapper)
    return lambda: _put_back(owner, name, wrapper, original)
