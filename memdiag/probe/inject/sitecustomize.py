"""Loads memdiag's probe at the start of an interpreter, then removes itself.

This directory is first on PYTHONPATH, so `site` finds this file before any other sitecustomize.
Then the directory is removed from sys.path and the import starts anew: the program's own
sitecustomize runs as if this one did not exist, errors included, and if there is none `site` gets
the error it expects. The syntax works in Pythons that are too old for the probe, such as Python 2.
"""

import os
import sys


def _load_probe(probe):
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
    from _memdiag_probe.hidden_loader import hide  # type: ignore[import-not-found]

    hide(probe)
    from _memdiag_probe.arm import arm  # type: ignore[import-not-found]

    arm()


_here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
sys.path[:] = [_entry for _entry in sys.path if _entry != _here]
sys.path_importer_cache.pop(_here, None)
try:  # noqa: SIM105
    _load_probe(os.path.dirname(_here))  # noqa: PTH120
except Exception:
    pass  # the program must not notice any failure
del sys.modules["sitecustomize"]
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401
