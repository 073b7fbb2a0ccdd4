"""Which source files belong to installed packages, and which to Python's own library."""

from __future__ import annotations

import os
import sys
from itertools import islice

from .guard import ours
from .plain_access import module_file

# (Not sys.prefix: it is /usr where a container's job lies in /usr/src/app.)
STANDARD_LIBRARY = (os.path.dirname(os.__file__) + os.sep, "<frozen", "<_memdiag_probe")  # noqa: PTH120
_NAMES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
# What `pip install --target` leaves beside each package.
_RECORD = ".dist-info"
_MOST_ENTRIES = 10_000

_folders: dict[str, bool] = {}


def package_folder(path: str) -> str:
    """The folder of packages that a source file is in, with a separator at its end; "" if it is in
    none.

    A folder of the module search path with `.dist-info` folders in it is one as well, unless the
    program itself lies there.
    """
    for name in _NAMES:
        at = path.rfind(name)
        if at >= 0:
            return path[: at + len(name)]
    for entry in sys.path:
        if type(entry) is not str or not path.startswith(entry):
            continue
        folder = entry.rstrip(os.sep) + os.sep
        if path.startswith(folder) and _has_packages(folder):
            return folder
    return ""


def _has_packages(folder: str) -> bool:
    known = _folders.get(folder)
    if known is None:
        main = module_file(sys.modules.get("__main__"))
        is_own = not os.path.isabs(folder) or os.path.abspath(main or "main").startswith(folder)  # noqa: PTH100, PTH117
        known = _folders[folder] = not is_own and _is_installed_into(folder)
    return known


def _is_installed_into(folder: str) -> bool:
    if folder.startswith(STANDARD_LIBRARY):
        return False
    try:
        with os.scandir(folder) as entries:
            return any(one.name.endswith(_RECORD) for one in islice(entries, _MOST_ENTRIES))
    except ours(OSError):
        return False
