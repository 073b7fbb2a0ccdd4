"""Loads the modules of the probe so that what looks at a program by its files does not see them.

Coverage, `trace` and their kind pass by what has no file (`<string>`, `<frozen importlib>`). What
the probe runs while they look on, and the hook of an import at least, would else be in their
reports, and take part in their totals.
"""

from __future__ import annotations

import _imp
import sys
from importlib.machinery import FileFinder, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType

# The frames of this file belong to the import system: they are taken out of the tracebacks of
# programs, and a warning that a module has for whoever imports it passes them by.
IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


def hide(directory: str) -> None:
    """Load what is imported from `directory` without a file's name from now on.

    Where the import system does not let us, the probe works as well, and is seen.
    """
    try:
        for ours in (_Loader.get_code, _Loader.exec_module, _rename):
            _rename(ours.__code__, __name__)
        sys.path_importer_cache[directory] = FileFinder(directory, (_Loader, [".py"]))
        globals().pop("__file__", None)
    except Exception:
        return


def _rename(code: CodeType, module: str) -> None:
    _imp._fix_co_filename(code, f"<{module}>")  # type: ignore[attr-defined]


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        if code is not None:
            _rename(code, fullname)
        return code

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.pop("__file__", None)
        super().exec_module(module)
