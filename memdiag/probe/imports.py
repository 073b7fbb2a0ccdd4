"""Tells when a module that the program imports is there, without importing it; and lends the tags
to programs in whose environment memdiag is not installed.
"""

from __future__ import annotations

import os
import sys

from .unseen import IMPORT_SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_LENT = "memdiag"


class Finder:
    """First on `sys.meta_path`: tells when a module has been imported, and lends the tags.

    What it is asked for it asks the other finders for. Names that it does not wait for it only
    declines, since every import of the program comes by.
    """

    def __init__(self, awaited: dict[str, Callable[[Any], None]]) -> None:
        """awaited: name of a module -> what to call with it once its import is complete."""
        self._awaited = awaited
        self._asking: set[str] = set()

    def leave(self) -> None:
        """Stand aside for good."""
        us: Any = self  # the kinds of it are what the import system asks for
        if us in sys.meta_path:
            sys.meta_path.remove(us)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the finders behind this one give, with a loader that tells us."""
        try:
            if name not in self._awaited and name != _LENT:
                return None
            if name in self._asking or path is not None:
                return None
            self._asking.add(name)
            try:
                spec = _from_others(self, name, path, target)
            finally:
                self._asking.discard(name)
            if name == _LENT:
                return spec or _tags()
            if spec is not None:
                self._follow(name, spec.loader)
            return spec
        except Exception:
            return None  # the others will be asked again, and raise what is theirs to raise

    def _follow(self, name: str, loader: Any) -> None:
        """Have this loader tell; it is left as it is but for one attribute, for one call."""
        try:
            load = loader.exec_module

            def exec_module(module: Any) -> None:
                try:  # noqa: SIM105
                    del loader.exec_module
                except Exception:
                    pass
                load(module)
                try:
                    self._awaited.pop(name)(module)
                except Exception:
                    return

            # Its frame is below all that the module does while it is imported.
            exec_module.__code__ = exec_module.__code__.replace(co_filename=IMPORT_SYSTEM)
            loader.exec_module = exec_module
        except Exception:
            return  # a loader that takes no attribute: the module goes unnoticed


def _tags() -> ModuleSpec | None:
    """The package that the probe came with, no more of it than the tags.

    A training that tags its steps runs under a memdiag that is installed elsewhere (`uvx memdiag
    run`): `import memdiag` finds them where nothing else finds it.
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
    us: Finder, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> ModuleSpec | None:
    """As the import system goes on after us."""
    for finder in list(sys.meta_path):
        find = getattr(finder, "find_spec", None)
        if finder is us or find is None:
            continue
        spec: ModuleSpec | None = find(name, path, target)
        if spec is not None:
            return spec
    return None
