"""Hides the modules of the probe from tools that report on a program by its files or compile it.

Coverage, `trace` and similar tools skip code without a file (`<string>`, `<frozen importlib>`).
Otherwise the probe's code would appear in their reports and totals. torch.compile compiles what
runs below a compiled function, but not what belongs to the import system.
"""

from __future__ import annotations

import _imp
import sys
from importlib.machinery import FileFinder, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType

# Frames of this file count as the import system: Python removes them from tracebacks of programs,
# and skips them for warnings that address the importer of a module.
IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


def hide(directory: str) -> None:
    """Load modules from `directory` without a file name from now on.

    If the import system does not allow this, the probe works too, but is visible.
    """
    try:
        for ours in (_Loader.get_code, _Loader.exec_module, _rename):
            _rename(ours.__code__, __name__)
        sys.path_importer_cache[directory] = FileFinder(directory, (_Loader, [".py"]))
        globals().pop("__file__", None)
    except Exception:
        return


def _rename(code: CodeType, module: str) -> None:
    _imp._fix_co_filename(code, f"<frozen importlib.{module}>")  # type: ignore[attr-defined]


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        if code is not None:
            _rename(code, fullname)
        return code

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.pop("__file__", None)
        super().exec_module(module)
