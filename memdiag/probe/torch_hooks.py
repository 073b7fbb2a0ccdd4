"""The hooks in torch: its own hooks on optimizers, and five wrapped functions.

There is no hook on the forward pass of modules: it costs 6 us per module, and splits compiled
graphs. A wrapper passes its arguments on unchanged, and returns or raises the same.
"""

from __future__ import annotations

import sys
import weakref
from functools import wraps
from time import monotonic

from .guard import never_raises, ours
from .wrap import let_compile, nothing, put_back, undo_all, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .torch_training import TorchTraining

# A module is "the model" if it holds this share of the trained parameters. A frozen backbone, or
# the batch norms, that are put into evaluation mode alone are not.
_MODEL_SHARE = 0.5
_MOST_IN_BATCH = 1000


class TorchHooks:
    """Connects torch to a TorchTraining. Hooks that a version of torch lacks are left out."""

    def __init__(self, torch: Any, training: TorchTraining) -> None:
        self._torch = torch
        self._training = training
        self._step_state = training.step_state
        self._optimizers: dict[int, Any] = {}
        self._trained: frozenset[int] | None = None
        self._scaled: set[int] = set()
        self.batch_bytes = 0  # of the tensors in a batch of a data loader, 0 if unknown
        self._undo: list[Callable[[], None]] = []

    def install(self) -> list[str]:
        """Set all hooks. Returns the names of those that this version of torch does not support."""
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
            except ours(Exception):
                missing.append(name)
        return missing

    def remove(self) -> None:
        """Restore torch. Functions that somebody has wrapped since stay, without effect."""
        undo_all(self._undo)

    def _wrap(self, owner: Any, name: str, **around: Any) -> None:
        self._undo.append(wrap(owner, name, **around))

    # -- optimizers ----------------------------------------------------------------------------

    def _hook_optimizers(self) -> None:
        module = sys.modules["torch.optim.optimizer"]  # torch.optim hides it
        step_state, training, stepped = self._step_state, self._training, self._stepped
        identity = id  # a local is faster than a builtin
        compiler = getattr(self._torch, "compiler", None)
        # True in code that torch.compile traces, where a change of ours would become a part of the
        # program's graph: such steps are counted by their backward passes.
        is_traced = getattr(compiler, "is_dynamo_compiling", nothing)

        # Short functions, not methods: they run at every step.
        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            try:
                if not is_traced() and step_state.sole is None:
                    training.optimizer_begins()
            except ours(Exception):
                return

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            try:
                if is_traced():
                    return
                reached = step_state.reached + 1
                if reached < step_state.check_clock_at and identity(optimizer) == step_state.sole:
                    step_state.reached = reached
                else:
                    stepped(optimizer)
            except ours(Exception):
                return

        let_compile(before)
        let_compile(after)
        self._undo.append(module.register_optimizer_step_pre_hook(before).remove)
        self._undo.append(module.register_optimizer_step_post_hook(after).remove)
        optimizer = module.Optimizer
        self._wrap(optimizer, "__init__", after=self._optimizer_made)

    def _stepped(self, optimizer: Any) -> None:
        key = id(optimizer)
        if key == self._step_state.sole:
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

        @never_raises
        def forget(_: Any) -> None:
            self._trained = None
            del self._optimizers[key]
            self._training.optimizer_gone(key)

        self._trained = None
        self._optimizers[key] = weakref.ref(optimizer, forget)

    def _hook_scaler(self) -> None:
        """A gradient scaler skips steps whose gradients overflow. They count as iterations too."""
        loaded = sys.modules
        module = loaded.get("torch.amp.grad_scaler") or loaded["torch.cuda.amp.grad_scaler"]
        self._wrap(module.GradScaler, "step", before=self._scaled_begins, after=self._scaled_ended)

    def _scaled_begins(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, int]:
        key = id(args[1] if len(args) > 1 else kwargs["optimizer"])
        self._scaled.add(key)
        return key, self._step_state.reached

    def _scaled_ended(self, before: tuple[int, int], _: tuple[Any, ...]) -> None:
        key, reached = before
        if key in self._scaled:
            self._scaled.discard(key)
            if self._step_state.reached == reached:
                self._training.optimizer_ended(key)

    # -- backward, mode, data, checkpoints -----------------------------------------------------

    def _hook_backward(self) -> None:
        owner, training, step_state = self._torch.autograd, self._training, self._step_state
        original = owner.backward

        @wraps(original)  # as `wrap`, with fewer calls: it runs at every step
        def backward(*args: Any, **kwargs: Any) -> Any:
            try:
                is_ignored = step_state.sole is not None
                if not is_ignored:
                    training.backward_begins()
            except ours(Exception):
                is_ignored = True
            if is_ignored:
                return original(*args, **kwargs)
            try:
                return original(*args, **kwargs)
            finally:
                try:
                    training.backward_ended()
                except ours(Exception):
                    pass

        def on_change(follows_everything: bool) -> None:
            # Even a wrapper that only passes on has a cost: remove it while it is ignored.
            before, after = (original, backward) if follows_everything else (backward, original)
            put_back(owner, "backward", before, after)

        def detach() -> None:
            step_state.on_scope_change(nothing)
            on_change(False)

        owner.backward = backward
        step_state.on_scope_change(on_change)
        self._undo.append(detach)

    def _hook_mode(self) -> None:
        # Not `train`, which recurses through all modules, in some trainers once per step.
        self._wrap(self._torch.nn.Module, "eval", after=self._mode_set)

    def _mode_set(self, _: Any, args: tuple[Any, ...]) -> None:
        model = args[0]
        if self._is_model(model):
            reference = weakref.ref(model)
            self._training.evaluation_begins(lambda: not getattr(reference(), "training", True))

    def _is_model(self, module: Any) -> bool:
        """Return True if `module` holds most of what is trained, or any weights if nothing is."""
        if self._trained is None:
            self._trained = frozenset(id(one) for one in self._trained_parameters())
        if not self._trained:
            return next(module.parameters(), None) is not None
        held = sum(id(parameter) in self._trained for parameter in module.parameters())
        return held >= _MODEL_SHARE * len(self._trained)

    def model_bytes(self) -> int:
        """The bytes of the parameters that optimizers train."""
        plain = (self._torch.Tensor, self._torch.nn.Parameter)
        trained = {id(one): one for one in self._trained_parameters() if type(one) in plain}
        return sum(one.numel() * one.element_size() for one in trained.values())

    def _trained_parameters(self) -> list[Any]:
        found = []
        for reference in list(self._optimizers.values()):
            for group in getattr(reference(), "param_groups", ()):
                found += group["params"]
        return found

    def _hook_data(self) -> None:
        loader = self._torch.utils.data.dataloader._BaseDataLoaderIter
        training, step_state, see_batch = self._training, self._step_state, self._see_batch
        fetch = loader.__next__

        @wraps(fetch)
        def __next__(self: Any) -> Any:  # noqa: N807
            try:
                is_ignored = step_state.sole is not None and self._num_yielded > 0
                if not is_ignored:
                    training.fetch_begins()
            except ours(Exception):
                is_ignored = True
            if is_ignored:
                return fetch(self)
            got_one = False
            begins = None
            try:
                if self._num_yielded == 0:
                    begins = id(self._dataset)
            except ours(Exception):
                begins = None
            try:
                batch = fetch(self)
                got_one = True
                if begins is not None:
                    see_batch(batch)
                return batch
            finally:
                try:
                    training.fetch_ended(got_one=got_one, begins=begins if got_one else None)
                except ours(Exception):
                    got_one = False

        loader.__next__ = __next__
        self._undo.append(lambda: put_back(loader, "__next__", __next__, fetch))

    @never_raises
    def _see_batch(self, batch: Any) -> None:
        """A pass over the data has begun with this batch."""
        todo, size = [batch], 0
        for one in todo:  # the list grows in the loop
            kind = type(one)
            if kind is self._torch.Tensor:
                size += one.numel() * one.element_size()
            elif (kind is list or kind is tuple or kind is dict) and len(todo) < _MOST_IN_BATCH:
                todo += one.values() if kind is dict else one
        self.batch_bytes = size

    def _hook_save(self) -> None:
        training = self._training
        self._wrap(
            self._torch,
            "save",
            before=lambda *_: training.checkpoint_begins(),
            after=lambda before, _: training.checkpoint_ended(before),
            also_on_error=True,
        )
