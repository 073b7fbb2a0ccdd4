"""Tells when a module that the program imports is there, without importing it; and lends the tags
to programs in whose environment memdiag is not installed.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


class Finder:
    """One of ours on `sys.meta_path`."""

    def leave(self) -> None:
        """Stand aside for good."""
        us: Any = self  # the kinds of it are what the import system asks for
        if us in sys.meta_path:
            sys.meta_path.remove(us)


class AfterImport(Finder):
    """A finder that finds nothing by itself: it has `then` called after `name` was imported.

    It stands first on `sys.meta_path` until then, and asks the others for the module. The
    module's loader is left as it is but for one attribute of the instance, for one call.
    """

    def __init__(self, name: str, then: Callable[[Any], None]) -> None:
        self._name = name
        self._then = then
        self._asking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the finders behind this one give, with a loader that tells us."""
        try:
            if name != self._name or self._asking:
                return None
            self._asking = True
            try:
                spec = _from_others(self, name, path, target)
            finally:
                self._asking = False
            if spec is not None:
                self._follow(spec.loader)
            return spec
        except Exception:
            return None  # the others will be asked again, and raise what is theirs to raise

    def _follow(self, loader: Any) -> None:
        try:
            load = loader.exec_module

            def exec_module(module: Any) -> None:
                try:  # noqa: SIM105
                    del loader.exec_module
                except Exception:
                    pass
                load(module)
                try:
                    self.leave()
                    self._then(module)
                except Exception:
                    return

            loader.exec_module = exec_module
        except Exception:
            return  # a loader that takes no attribute: the module goes unnoticed


class LentTags(Finder):
    """The last finder of all: `import memdiag` finds the tags where nothing else finds it.

    A training that tags its steps runs under a memdiag that is installed elsewhere (`uvx memdiag
    run`). What is imported is as plain as the probe: no more than the tags.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of the package that the probe came with."""
        try:
            if name != "memdiag" or path is not None:
                return None
            from importlib.util import spec_from_file_location

            here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
            return spec_from_file_location(
                name,
                os.path.join(here, "__init__.py"),  # noqa: PTH118 (no pathlib in here)
                submodule_search_locations=[here],
            )
        except Exception:
            return None


def _from_others(
    us: AfterImport, name: str, path: Sequence[str] | None, target: ModuleType | None
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
