"""Notices when the program has imported a framework, without importing it; and provides the tags
to programs in whose environment memdiag is not installed.
"""

from __future__ import annotations

import os
import sys

from .guard import ours
from .hidden_loader import IMPORT_SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_LENT = "memdiag"


class ImportHook:
    """First on `sys.meta_path`: calls back when a module has been imported, and provides the tags.

    It finds modules through the other finders. Other names are declined at once, because every
    import of the program passes here.
    """

    def __init__(self, awaited: dict[str, Callable[[Any], None]]) -> None:
        """awaited: name of a module -> function to call with it once its import is complete."""
        self._awaited = awaited
        self._registered: set[str] = set()

    def detach(self) -> None:
        """Remove this hook."""
        us: Any = self
        if us in sys.meta_path:
            sys.meta_path.remove(us)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders return, with a loader that calls back."""
        try:
            if name not in self._awaited and name != _LENT:
                return None
            if name in self._registered or path is not None:
                return None
            self._registered.add(name)
            try:
                spec = _from_others(self, name, path, target)
            finally:
                self._registered.discard(name)
            if name == _LENT:
                return spec or _tags()
            if spec is not None:
                self._follow(name, spec.loader)
            return spec
        except ours(Exception):
            return None  # the other finders are called again, and raise their own errors

    def _follow(self, name: str, loader: Any) -> None:
        """Have this loader call back. One attribute of it is replaced, for one call."""
        try:
            load = loader.exec_module

            def exec_module(module: Any) -> None:
                try:
                    del loader.exec_module
                except ours(Exception):
                    pass
                load(module)
                try:
                    self._awaited.pop(name)(module)
                except ours(Exception):
                    return

            # Its frame is in all tracebacks from the import of the module.
            exec_module.__code__ = exec_module.__code__.replace(co_filename=IMPORT_SYSTEM)
            loader.exec_module = exec_module
        except ours(Exception):
            return  # a loader without attributes: its module is not noticed


def _tags() -> ModuleSpec | None:
    """The spec of the package that the probe belongs to, for its tags.

    With a memdiag that is installed elsewhere (`uvx memdiag run`), `import memdiag` in a training
    finds the tags if no other finder finds memdiag.
    """
    from importlib.util import spec_from_file_location

    probe = os.path.abspath(sys.modules[__package__].__path__[0])  # noqa: PTH100
    here = os.path.dirname(probe)  # noqa: PTH120 (no pathlib in here)
    return spec_from_file_location(
        _LENT,
        os.path.join(here, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[here],
    )


def _from_others(
    us: ImportHook, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """The spec by the finders after this one, as the import system does it."""
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        if finder is us or find is None:
            continue
        spec: ModuleSpec | None = find(name, path, target)
        if spec is not None:
            return spec
    return None
