"""Has objects of all classes in C that can be made without arguments, most of them not initialized,
and looks at each of them as the probe does. Prints how many there were.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import warnings
from pathlib import Path

from memdiag.probe.kept_bytes import Arrays, Kept, per_item, per_object
from memdiag.probe.name_walk import NameWalk
from memdiag.probe.places import Places

HERE = Path(os.__file__).parent
# They open windows, a browser or another process, or test Python.
LEFT_OUT = ("_", "test", "idlelib", "turtle", "antigravity", "this", "lib2to3", "tkinter", "xx")
# Python itself crashes where these are made, or are asked for their size, without `__init__`.
CRASHING = {"Struct", "WeakMethod", "KeyedRef", "weakref", "ReferenceType", "SSLSession"}


def classes() -> list[type]:
    warnings.simplefilter("ignore")
    names = [one.name for one in pkgutil.iter_modules([str(HERE), str(HERE / "lib-dynload")])]
    for name in (*sys.builtin_module_names, *names):
        if not name.startswith(LEFT_OUT):
            try:
                importlib.import_module(name)
            except Exception:
                continue  # of another system, or a package of a test's environment
    found: dict[int, type] = {}
    todo: list[type] = [object]
    while todo:
        kind = todo.pop()
        if id(kind) not in found:
            found[id(kind)] = kind
            todo += type.__subclasses__(kind)
    return list(found.values())


def made(kind: type) -> object:
    for make in (kind.__new__, lambda kind: kind()):
        try:
            return make(kind)
        except BaseException:
            continue
    return None


objects = [
    made(kind)
    for kind in classes()
    if not (issubclass(kind, (type, BaseException)) or kind.__name__ in CRASHING)
]
objects = [one for one in objects if one is not None]
arrays = Arrays()
NameWalk(Places(), arrays).run()
for one in objects:
    per_item([[one, one, one]], arrays)
    per_object([one, one, one], arrays)
    kept = Kept(arrays)
    kept.add(one)
    kept.total()
print(len(objects), flush=True)
os._exit(0)  # what was not initialized need not survive its end
