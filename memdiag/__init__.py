"""memdiag: is the growing memory of a training a warm-up or a leak, and whose fault is it?

A training script may call `memdiag.step(n)`, `memdiag.phase("eval")` and
`memdiag.counter("model_copies", n)`. They cost next to nothing and do nothing at all when
memdiag is not watching. Importing this package imports nothing else.
`@memdiag.on_pressure("critical")` has a function called before memory runs out.

In a notebook or a script, `memdiag.analyze(source)` judges recordings, logs, data frames and
arrays, `memdiag.analyze_many(paths)` judges thousands of files, `memdiag.record()` records this
process, `memdiag.compare(before, after)` compares runs, and `memdiag.explain()` lists what is in
memory, with its holders. `%load_ext memdiag` adds the cell magic `%%memdiag`.
"""

from memdiag.tags import counter, on_pressure, phase, step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memdiag.api.analyze import analyze, compare
    from memdiag.api.diagnosis import Comparison, Diagnosis, Growth, Rate
    from memdiag.api.explanation import Explanation, explain
    from memdiag.api.many import analyze_many
    from memdiag.api.notebook import load_ipython_extension, unload_ipython_extension
    from memdiag.api.recorder import Recorder, record
    from memdiag.errors import CaptureError, LeakError, MemdiagError, ReadError, UsageError
    from memdiag.values.comparison import Effect
    from memdiag.values.fleet import RecordingResult, SeriesResult
    from memdiag.values.verdict import Verdict

__version__ = "0.1.0"
__all__ = [
    "CaptureError",
    "Comparison",
    "Diagnosis",
    "Effect",
    "Explanation",
    "Growth",
    "LeakError",
    "MemdiagError",
    "Rate",
    "ReadError",
    "Recorder",
    "RecordingResult",
    "SeriesResult",
    "UsageError",
    "Verdict",
    "__version__",
    "analyze",
    "analyze_many",
    "compare",
    "counter",
    "explain",
    "load_ipython_extension",
    "on_pressure",
    "phase",
    "record",
    "step",
    "unload_ipython_extension",
]

# The module of each name that is loaded when it is used.
_MODULES = {
    "memdiag.api.analyze": ("analyze", "compare"),
    "memdiag.api.diagnosis": ("Comparison", "Diagnosis", "Growth", "Rate"),
    "memdiag.api.explanation": ("Explanation", "explain"),
    "memdiag.api.many": ("analyze_many",),
    "memdiag.api.notebook": ("load_ipython_extension", "unload_ipython_extension"),
    "memdiag.api.recorder": ("Recorder", "record"),
    "memdiag.errors": ("CaptureError", "LeakError", "MemdiagError", "ReadError", "UsageError"),
    "memdiag.values.comparison": ("Effect",),
    "memdiag.values.fleet": ("RecordingResult", "SeriesResult"),
    "memdiag.values.verdict": ("Verdict",),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            from importlib import import_module

            found: object
            try:
                found = getattr(import_module(module), name)
            except Exception as error:
                if name != "explain":
                    raise
                # In a program under `memdiag run`, it must not raise.
                from memdiag._without_packages import explanation_for

                return explanation_for(error)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> "list[str]":
    return __all__
