"""Lets memdiag's probe into the interpreter, then gets out of the way.

This directory is first on PYTHONPATH, so `site` finds this file before any other sitecustomize.
Once the probe is in, the directory leaves sys.path and the import starts anew: the program's own
sitecustomize runs as if this one had never been there, errors included, and where there is none
`site` sees the very error it expects. Also read by Pythons too old for the probe, Python 2
included: hence the syntax.
"""

import os
import sys


def _let_in(probe):
    # type: (str) -> None
    if sys.version_info < (3, 8):  # noqa: UP036
        return
    from importlib.machinery import SourceFileLoader

    name = "_memdiag_probe"
    loader = SourceFileLoader(name, os.path.join(probe, "__init__.py"))  # noqa: PTH118
    package = type(sys)(name)
    package.__file__ = loader.path
    package.__path__ = [probe]
    package.__package__ = name
    sys.modules[name] = package
    loader.exec_module(package)
    from _memdiag_probe.unseen import hide  # type: ignore[import-not-found]

    hide(probe)
    from _memdiag_probe.arming import arm  # type: ignore[import-not-found]

    arm()


_here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
sys.path[:] = [_entry for _entry in sys.path if _entry != _here]
sys.path_importer_cache.pop(_here, None)
try:  # noqa: SIM105
    _let_in(os.path.dirname(_here))  # noqa: PTH120
except Exception:
    pass  # whatever it is, the program must not notice
del sys.modules["sitecustomize"]
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401
