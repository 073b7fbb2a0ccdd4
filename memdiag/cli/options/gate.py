"""The gate: the options that decide what fails, the same for run, watch and analyze.

Facts about a run that memdiag cannot measure (limits, the size of the model) are given with it.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TypeVar

from memdiag.cli.options import config_layers
from memdiag.cli.options.actions import Reaction, parse_reaction
from memdiag.cli.options.config_layers import Given
from memdiag.cli.options.declare import choice, option, repeatable
from memdiag.cli.options.exit_codes import (
    DEFAULT_FAIL_ON,
    Decider,
    FailOn,
    Inconclusive,
    Outcome,
    failing_outcomes,
)
from memdiag.errors import UsageError
from memdiag.recording.native.runs import Place
from memdiag.values.budgets import Budget, BudgetKind, Stretch, parse_budget
from memdiag.values.measurements import ON_DEVICE, AxisKind, Limit, MarkLevel, Role
from memdiag.values.thresholds import Threshold, parse_threshold
from memdiag.values.units import invalid, parse_bytes, parse_count, parse_seconds

_ON_HOST = frozenset(
    {
        Role.RESIDENT,
        Role.UNIQUE,
        Role.PROPORTIONAL,
        Role.HOST,
        Role.IN_USE,
        Role.COLLECTED_HEAP,
        Role.PEAK,
    }
)
_Choice = TypeVar("_Choice", bound=enum.Enum)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """The gate's options, in the order of the help screen."""

    limit: str | None = option(
        "--limit",
        "SIZE",
        "Forecast when memory use will reach SIZE (16GB).",
        panel="Limits and alarms",
        typical=True,
    )
    gpu_limit: str | None = option(
        "--gpu-limit",
        "SIZE",
        "Memory limit of each GPU; --limit then applies to host memory only.",
        panel="Limits and alarms",
    )
    warn_at: tuple[str, ...] = repeatable(
        "--warn-at",
        "[METRIC=]SIZE|N%",
        "Warn when memory use reaches this: 12GB, vram=20GB, 80% of the tightest limit; or when a "
        "leak will reach a limit in this time: in:5min.",
        panel="Limits and alarms",
    )
    critical_at: tuple[str, ...] = repeatable(
        "--critical-at",
        "[METRIC=]SIZE|N%",
        "Like --warn-at, reported as critical.",
        panel="Limits and alarms",
    )
    on: tuple[str, ...] = repeatable(
        "--on",
        "LEVEL=ACTION",
        "What to do at --warn-at (warn), --critical-at (critical), or once a leak is confirmed "
        "(leak): note, stop, signal:USR1, exec:COMMAND, webhook:URL.",
        panel="Limits and alarms",
    )
    model_params: int | None = option(
        "--model-params",
        "N",
        "Parameters of the model (124M): growth is also reported as copies of the model.",
        parse=partial(parse_count, option="--model-params"),
        panel="Limits and alarms",
    )
    max_growth: tuple[str, ...] = repeatable(
        "--max-growth",
        "[METRIC=]SIZE/STRETCH",
        "Fail on faster growth at the end of the run: 1GB/50steps, rss=10MB/epoch, 50MB/min.",
        panel="Gate",
        typical=True,
    )
    max_peak: tuple[str, ...] = repeatable(
        "--max-peak",
        "[METRIC=]SIZE",
        "Fail if peak memory exceeds SIZE: 16GB, vram=20GiB.",
        panel="Gate",
        typical=True,
    )
    max_variation: tuple[str, ...] = repeatable(
        "--max-variation",
        "[METRIC=]SIZE",
        "Fail if memory varies by more than SIZE (from --after-step on).",
        panel="Gate",
    )
    after_step: str | None = option(
        "--after-step", "N", "First step to which --max-variation applies.", panel="Gate"
    )
    after_time: str | None = option(
        "--after-time",
        "TIME",
        "Like --after-step, for recordings without steps (90, 10min).",
        panel="Gate",
    )
    max_tensors_growth: str | None = option(
        "--max-tensors-growth",
        "N/STRETCH",
        "Fail if the number of live tensors grows faster: 0/epoch, 100/1000steps.",
        panel="Gate",
    )
    fail_on: tuple[str, ...] = repeatable(
        "--fail-on",
        "WHAT",
        "Outcomes that fail: leak, warmup, budget, inconclusive, never.  "
        "[default: leak,budget,inconclusive]",
        panel="Gate",
    )
    inconclusive: Inconclusive | None = option(
        "--inconclusive",
        None,
        "Whether an inconclusive verdict fails (exit code 3).  [default: fail]",
        panel="Gate",
    )
    exit_code: Decider | None = option(
        "--exit-code",
        None,
        "Exit with the status of a COMMAND that fails, or always with the verdict's.  "
        "[default: command]",
        panel="Gate",
    )


_BUDGET_KINDS = {
    "max-growth": BudgetKind.GROWTH,
    "max-peak": BudgetKind.PEAK,
    "max-variation": BudgetKind.VARIATION,
    "max-tensors-growth": BudgetKind.GROWTH,
}
_LEVELS = {"warn-at": MarkLevel.WARNING, "critical-at": MarkLevel.CRITICAL}
# What the environment and pyproject.toml cannot set.
_COMMAND_LINE_ONLY = frozenset({"model_params"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What was settled: budgets, and what fails."""

    budgets: tuple[Budget, ...] = ()
    fail_on: frozenset[FailOn] = DEFAULT_FAIL_ON
    inconclusive: Inconclusive = Inconclusive.FAIL
    decider: Decider = Decider.COMMAND
    limit_bytes: int | None = None
    gpu_limit_bytes: int | None = None
    thresholds: tuple[Threshold, ...] = ()
    reactions: tuple[Reaction, ...] = ()
    model_params: int | None = None

    @property
    def failing(self) -> frozenset[Outcome]:
        """The outcomes that fail the command."""
        return failing_outcomes(self.fail_on, self.inconclusive)

    @property
    def metrics(self) -> list[str]:
        """The metrics that budgets and thresholds name."""
        named = [one.metric for one in self.budgets] + [one.metric for one in self.thresholds]
        return list(filter(None, named))

    def limits(self, gpu_columns: Sequence[str] = ()) -> tuple[Limit, ...]:
        """The limits that `--limit` and `--gpu-limit` set.

        gpu_columns: the metrics of the single GPUs if the target uses several: `--gpu-limit`
        applies to each of them.
        """
        found = []
        if self.limit_bytes is not None:
            roles = _ON_HOST if self.gpu_limit_bytes is not None else _ON_HOST | ON_DEVICE
            found.append(Limit(name="--limit", value_bytes=self.limit_bytes, roles=roles))
        if self.gpu_limit_bytes is not None:
            size = self.gpu_limit_bytes
            found += [
                Limit(name="--gpu-limit", value_bytes=size, roles=ON_DEVICE, metric=metric)
                for metric in gpu_columns or ("",)
            ]
        return tuple(found)


def settle(
    options: GateOptions,
    *,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Gate:
    """The gate by command line, environment and pyproject.toml. Raises UsageError.

    environ, directory: os.environ and the working directory by default.
    """
    given = _gathered(options, environ, directory)
    return Gate(
        budgets=tuple(_budgets(given)),
        fail_on=_fail_on(given.get("fail-on")),
        inconclusive=_choice(Inconclusive.FAIL, given.get("inconclusive")),
        decider=_choice(Decider.COMMAND, given.get("exit-code")),
        limit_bytes=_size(given.get("limit")),
        gpu_limit_bytes=_size(given.get("gpu-limit")),
        thresholds=tuple(_thresholds(given)),
        reactions=tuple(_reactions(given.get("on"))),
        model_params=options.model_params,
    )


def place_of_runs(
    *, environ: Mapping[str, str] | None = None, directory: Path | None = None
) -> Place:
    """Where runs are kept, by environment and pyproject.toml. Raises UsageError."""
    given = _gathered(GateOptions(), environ, directory).get(config_layers.DIRECTORY)
    if given is None:
        return Place()
    return Place(path=Path(given.only()).expanduser(), is_named=True)


def _gathered(
    options: GateOptions, environ: Mapping[str, str] | None, directory: Path | None
) -> dict[str, Given]:
    """The layers of all settings. Raises UsageError."""
    names = {
        one.name.replace("_", "-"): _texts(getattr(options, one.name))
        for one in fields(options)
        if one.name not in _COMMAND_LINE_ONLY
    }
    return config_layers.gather(
        {**names, config_layers.DIRECTORY: ()},
        os.environ if environ is None else environ,
        Path() if directory is None else directory,
    )


def _texts(value: str | enum.Enum | tuple[str, ...] | None) -> Sequence[str]:
    """An option's values; none if it was not given."""
    if isinstance(value, enum.Enum):
        return [str(value.value)]
    return [value] if isinstance(value, str) else value or ()


def _size(given: Given | None) -> int | None:
    if given is None:
        return None
    size = parse_bytes(given.only(), given.where)
    if size <= 0:
        raise invalid(given.only(), given.where, "must be greater than 0", "write 16GB or 1.5GiB")
    return size


def _budgets(given: Mapping[str, Given]) -> Iterator[Budget]:
    since = _since(given)
    for name, kind in _BUDGET_KINDS.items():
        for text in given[name].values if name in given else ():
            yield parse_budget(
                kind,
                text,
                given_as=given[name].where,
                since=since if kind is BudgetKind.VARIATION else None,
                metric="tensors" if name == "max-tensors-growth" else "",
            )


def _thresholds(given: Mapping[str, Given]) -> Iterator[Threshold]:
    for name, level in _LEVELS.items():
        for text in given[name].values if name in given else ():
            yield parse_threshold(level, text, given_as=given[name].where)


def _reactions(given: Given | None) -> Iterator[Reaction]:
    if given is not None:
        for text in given.values:
            yield parse_reaction(text, given.where)


def _since(given: Mapping[str, Given]) -> Stretch | None:
    """Where `--max-variation` begins to apply."""
    step, seconds = given.get("after-step"), given.get("after-time")
    if step is not None and seconds is not None:
        raise UsageError(
            f"{step.where} and {seconds.where} contradict each other", remedy="give one of them"
        )
    one = step or seconds
    if one is None:
        return None
    if "max-variation" not in given:
        raise UsageError(
            f"{one.where} applies to --max-variation, which is not given",
            remedy="give --max-variation as well: --max-variation 500MB --after-step 90",
        )
    text = one.only()
    if one is seconds:
        return Stretch(length=parse_seconds(text, one.where), axis=AxisKind.SECONDS)
    try:
        return Stretch(length=float(text.replace(",", "")), axis=AxisKind.STEP)
    except ValueError as error:
        remedy = "write a number: --after-step 90"
        raise invalid(text, one.where, "not a step", remedy) from error


def _fail_on(given: Given | None) -> frozenset[FailOn]:
    if given is None:
        return DEFAULT_FAIL_ON
    words = [word for text in given.values for word in text.split(",")]
    chosen = frozenset(choice(FailOn, word, given.where) for word in words)
    if FailOn.NEVER in chosen and len(chosen) > 1:
        raise UsageError(
            f"{given.where}: 'never' cannot be combined with other values",
            remedy="give never alone",
        )
    return chosen


def _choice(default: _Choice, given: Given | None) -> _Choice:
    return default if given is None else choice(type(default), given.only(), given.where)
