"""`%load_ext memdiag` and the cell magic `%%memdiag`: what a cell leaves in memory."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memdiag.api.diagnosis import Diagnosis
from memdiag.errors import UsageError
from memdiag.integrations.pytest_report import finding
from memdiag.integrations.repeat_until_settled import (
    TOLERANCES,
    Metric,
    MetricReader,
    Repetition,
    Settled,
    Terms,
    frozen_objects,
)
from memdiag.probe.kept_bytes import Arrays, Kept
from memdiag.report.text import numbers
from memdiag.values.findings import Diagnosis as Found
from memdiag.values.measurements import Unit
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict

_MAGIC = "memdiag"
_NAMES = {
    Metric.MALLOC: "malloc",
    Metric.BLOCKS: "Python objects",
    Metric.CUDA: "CUDA",
    Metric.RSS: "RSS",
}
# Running a cell leaves about this much in IPython itself (its history, compiled code). Measured.
_OWN_BYTES = 64e3
_MOST_NAMES, _MOST_RUNS = 5, 8
# What IPython keeps of earlier cells.
_RESULTS = "Out"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CellMemory:
    """What one run of a cell has left in memory, after garbage was collected.

    left: growth of each metric that could be read: bytes, or a number of blocks of Python's.
    grown: names of the notebook whose objects have grown, with the bytes, the largest first.
    runs: growth of the first metric in each run of this cell so far, the last one included.
    """

    left: Mapping[str, float]
    grown: tuple[tuple[str, int], ...]
    runs: tuple[float, ...]

    def __repr__(self) -> str:
        metric = next(iter(self.left), "")
        amount = self.left.get(metric, math.nan)
        parts = ", ".join(
            f"{_NAMES[Metric(name)]} {_shown(name, v)}" for name, v in self.left.items()
        )
        lines = [f"This cell leaves {_amount(amount)} in memory ({parts})."]
        lines += [
            f"  {printable(name)}  {numbers.signed(size, Unit.BYTES)}" for name, size in self.grown
        ]
        if len(self.runs) > 1:
            runs = ", ".join(_shown(metric, run) for run in self.runs[-_MOST_RUNS:])
            lines.append(f"Run {len(self.runs)} of this cell; the last ones left {runs}.")
            if min(self.runs[1:]) > _OWN_BYTES:
                lines.append("Each run adds more: %%memdiag --repeat shows if that is a leak.")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CellVerdict:
    """Whether a cell leaks, by repeating it (`%%memdiag --repeat`).

    verdict: LEAK, STABLE or INCONCLUSIVE. calls: how often it ran. growth_per_call: of the metric
    that leaks, in bytes (blocks for Python objects). diagnosis: the readings as a report.
    """

    verdict: Verdict
    calls: int
    growth_per_call: float
    why: str
    diagnosis: Diagnosis

    def __repr__(self) -> str:
        head = f"{self.verdict.name} after {self.calls:,} runs of this cell"
        return f"{head}: {self.why}"

    def _repr_html_(self) -> str | None:
        return self.diagnosis._repr_html_() if self.verdict is Verdict.LEAK else None


def load_ipython_extension(shell: Any) -> None:
    """Add the cell magic `%%memdiag` to IPython; called by `%load_ext memdiag`."""
    shell.register_magic_function(CellMagic(shell), magic_kind="cell", magic_name=_MAGIC)


def unload_ipython_extension(shell: Any) -> None:
    """Remove the cell magic again; called by `%unload_ext memdiag`."""
    shell.magics_manager.magics["cell"].pop(_MAGIC, None)


class CellMagic:
    """Runs a cell and shows what it leaves in memory."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._runs: dict[bytes, list[float]] = {}  # by the hash of the cell's text
        self._read = MetricReader(tuple(Metric)).read

    def __call__(self, line: str, cell: str) -> None:
        from IPython.core.error import UsageError as Misused
        from IPython.display import display

        try:
            options = _options(line)
        except UsageError as error:
            raise Misused(str(error)) from None
        shown = self._repeated(cell, options.seconds) if options.repeat else self._once(cell)
        if shown is not None:
            display(shown)

    def _once(self, cell: str) -> CellMemory | None:
        """Run the cell; None if it fails, which IPython has shown."""
        sizes, before = self._sizes(), self._read()
        if not self._shell.run_cell(cell, store_history=False).success:
            return None
        after = self._read()
        left = {
            metric.value: after[metric] - before[metric]
            for metric in before
            if math.isfinite(after[metric] - before[metric])
        }
        left = {name: value for name, value in left.items() if value or name != Metric.CUDA.value}
        grown = [(name, size - sizes.get(name, 0)) for name, size in self._sizes().items()]
        largest = sorted((one for one in grown if one[1] > _OWN_BYTES), key=lambda one: -one[1])
        key = hashlib.blake2b(cell.encode(errors="surrogatepass")).digest()
        runs = self._runs.setdefault(key, [])
        runs.append(next(iter(left.values()), math.nan))
        return CellMemory(left=left, grown=tuple(largest[:_MOST_NAMES]), runs=tuple(runs))

    def _repeated(self, cell: str, seconds: float) -> CellVerdict:
        """Run the cell until it is settled if it leaks. Its output is shown once."""
        code = compile(self._shell.transform_cell(cell), "<cell of %%memdiag>", "exec")
        repetition = Repetition(Terms(seconds=seconds))
        with frozen_objects():
            for call in repetition:
                # Captured, what it prints would grow.
                with contextlib.redirect_stdout(_Nowhere() if call else sys.stdout):
                    exec(code, self._shell.user_ns)  # noqa: S102 - the user's cell
        settled = repetition.settled
        assert settled is not None
        found = Found(recordings=(finding(settled, "this cell"),))
        return CellVerdict(
            verdict=settled.verdict,
            calls=settled.calls,
            growth_per_call=settled.growth_per_call,
            why=_why(settled),
            diagnosis=Diagnosis(found=found),
        )

    def _sizes(self) -> dict[str, int]:
        """Bytes that each name of the notebook keeps; at least, for the largest ones."""
        space, arrays = self._shell.user_ns, Arrays()
        hidden = self._shell.user_ns_hidden
        names = [name for name in [*space] if not name.startswith("_") and name not in hidden]
        sizes = {}
        for name in (*names, _RESULTS):
            kept = Kept(arrays)
            kept.add(space.get(name))
            sizes[name] = kept.total()[0]
        return sizes


def _options(line: str) -> argparse.Namespace:
    """Raises UsageError."""
    parser = argparse.ArgumentParser(prog=f"%%{_MAGIC}", add_help=False, exit_on_error=False)
    parser.add_argument("--repeat", action="store_true")
    parser.add_argument("--seconds", type=float, default=Terms().seconds)
    remedy = "%%memdiag, or %%memdiag --repeat [--seconds S]"
    try:
        options, others = parser.parse_known_args(line.split())
    except argparse.ArgumentError as error:
        raise UsageError(f"%%memdiag: {error}", remedy=remedy) from error
    if others or not options.seconds > 0:
        raise UsageError(f"%%memdiag: unknown options {line.strip()!r}", remedy=remedy)
    return options


def _why(settled: Settled) -> str:
    if settled.verdict is Verdict.STABLE:
        tolerance = numbers.quantity(TOLERANCES[Metric.MALLOC], Unit.BYTES)
        return f"it does not grow by more than {tolerance} per run"
    if settled.verdict is Verdict.LEAK and settled.metric is not None:
        name = settled.metric.value
        return f"{_NAMES[settled.metric]} {_shown(name, settled.growth_per_call)} per run"
    return settled.why


def _amount(size: float) -> str:
    if not math.isfinite(size):
        return "an unknown amount"
    return numbers.quantity(size, Unit.BYTES) if size > _OWN_BYTES else "next to nothing"


def _shown(metric: str, value: float) -> str:
    unit = Unit.COUNT if metric == Metric.BLOCKS.value else Unit.BYTES
    return numbers.signed(value, unit)


class _Nowhere(io.TextIOBase):
    """Drops what is written."""

    def write(self, text: str, /) -> int:
        return len(text)
