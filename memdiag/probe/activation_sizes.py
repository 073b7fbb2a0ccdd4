"""How large the outputs of torch's modules are in one step: what a place keeps may be one of them.

A hook on all modules for one step, which takes 1.5 us for each call of a module. Not where torch
compiles the program: it would warn, or compile again.
"""

from __future__ import annotations

import sys

from .guard import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_SIZES, _MOST_CLASSES = 64, 3


class ActivationSizes:
    """The outputs of one step. found: classes of modules by the bytes of an output."""

    def __init__(self) -> None:
        self.found: dict[int, list[str]] = {}
        self._handle: Any = None
        self._is_done = False

    @property
    def is_open(self) -> bool:
        """Return True while the outputs of a step are looked at."""
        return self._handle is not None

    @property
    def is_wanted(self) -> bool:
        """Return True until one step was looked at, where that is possible."""
        return not self._is_done and "torch.nn.modules.module" in sys.modules

    def begin(self) -> None:
        """Look at the outputs until `end`. Never raises."""
        self._is_done = True
        try:
            dynamo: Any = sys.modules.get("torch._dynamo.utils")
            if dynamo is None or not dynamo.counters.get("frames"):
                modules: Any = sys.modules["torch.nn.modules.module"]
                self._handle = modules.register_module_forward_hook(self._saw)
        except ours(Exception):
            return  # another version, or another module of this name

    def end(self) -> None:
        """Remove the hook. Never raises."""
        handle, self._handle = self._handle, None
        try:
            if handle is not None:
                handle.remove()
        except ours(Exception):
            return

    def _saw(self, module: Any, arguments: Any, output: Any) -> None:
        try:
            if self._handle is not None and type(output) is sys.modules["torch"].Tensor:
                classes = self.found.get(size := int(output.untyped_storage().nbytes()))
                if classes is None and len(self.found) < _MOST_SIZES:
                    classes = self.found[size] = []
                name = type(module).__name__
                if classes is not None and name not in classes and len(classes) < _MOST_CLASSES:
                    classes.append(name)
        except ours(Exception):
            return
