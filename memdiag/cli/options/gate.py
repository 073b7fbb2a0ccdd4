"""The gate: what lets a command fail beside a leak, the same for run, watch and analyze.

What else is told of a run from outside (limits, the size of the model) comes along with it.
"""

from __future__ import annotations

import enum
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from memdiag.cli.options import config_layers
from memdiag.cli.options.config_layers import Given
from memdiag.cli.options.exit_codes import DEFAULT_FAIL_ON, Decider, FailOn, Inconclusive
from memdiag.errors import UsageError
from memdiag.values.budgets import Budget, BudgetKind, Stretch, parse_budget
from memdiag.values.measurements import AxisKind, MarkLevel
from memdiag.values.sanitize import printable
from memdiag.values.thresholds import Threshold, parse_threshold
from memdiag.values.units import parse_count, parse_seconds

Limit = Annotated[
    str | None,
    typer.Option("--limit", metavar="SIZE", help="Say when this much (16GB) will be in use."),
]
GpuLimit = Annotated[
    str | None,
    typer.Option(
        "--gpu-limit",
        metavar="SIZE",
        help="The same for the memory of each GPU; --limit is then for the host's alone.",
    ),
]
WarnAt = Annotated[
    list[str] | None,
    typer.Option(
        "--warn-at",
        metavar="[METRIC=]SIZE|N%",
        help="Say once when this much is in use: 12GB, vram=20GB, 80% of the tightest limit.",
    ),
]
CriticalAt = Annotated[
    list[str] | None,
    typer.Option("--critical-at", metavar="[METRIC=]SIZE|N%", help="The same, said as critical."),
]
MaxGrowth = Annotated[
    list[str] | None,
    typer.Option(
        "--max-growth",
        metavar="[METRIC=]SIZE/STRETCH",
        help="Fail on faster growth at the end of the run: 1GB/50steps, rss=10MB/epoch, 50MB/min.",
    ),
]
MaxPeak = Annotated[
    list[str] | None,
    typer.Option(
        "--max-peak",
        metavar="[METRIC=]SIZE",
        help="Fail if it was ever higher: 16GB, vram=20GiB.",
    ),
]
MaxVariation = Annotated[
    list[str] | None,
    typer.Option(
        "--max-variation",
        metavar="[METRIC=]SIZE",
        help="Fail if it varies by more (from --after-step on).",
    ),
]
AfterStep = Annotated[
    str | None,
    typer.Option("--after-step", metavar="N", help="Where --max-variation begins."),
]
AfterTime = Annotated[
    str | None,
    typer.Option(
        "--after-time",
        metavar="TIME",
        help="The same for recordings without steps (90, 10min).",
    ),
]
MaxTensorsGrowth = Annotated[
    str | None,
    typer.Option(
        "--max-tensors-growth",
        metavar="N/STRETCH",
        help="Fail if live tensors grow faster: 0/epoch, 100/1000steps.",
    ),
]
FailOnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="WHAT",
        help="What fails: leak, warmup, budget, inconclusive, never.  "
        "[default: leak,budget,inconclusive]",
    ),
]
InconclusiveOption = Annotated[
    Inconclusive | None,
    typer.Option(
        "--inconclusive",
        help="Whether a doubt fails (exit code 3).  [default: fail]",
    ),
]
ExitCodeOption = Annotated[
    Decider | None,
    typer.Option(
        "--exit-code",
        help="Whose failure decides: a failing COMMAND's, or none's.  [default: command]",
    ),
]
JunitXml = Annotated[
    Path | None,
    typer.Option(
        "--junitxml",
        metavar="FILE",
        help="Write a JUnit report: a test case for each series and budget.",
    ),
]
Markdown = Annotated[
    Path | None,
    typer.Option(
        "--markdown",
        metavar="FILE",
        help="Write the report as Markdown.",
    ),
]

ModelParams = Annotated[
    str | None,
    typer.Option(
        "--model-params",
        metavar="N",
        help="Parameters of the model (124M): growth is then also told in copies of it.",
    ),
]

_BUDGET_KINDS = {
    "max-growth": BudgetKind.GROWTH,
    "max-peak": BudgetKind.PEAK,
    "max-variation": BudgetKind.VARIATION,
    "max-tensors-growth": BudgetKind.GROWTH,
}
_Choice = TypeVar("_Choice", bound=enum.Enum)
_LEVELS = {"warn-at": MarkLevel.WARNING, "critical-at": MarkLevel.CRITICAL}
# Options that only some commands have: those that start one, those that record one.
_STARTING = frozenset({"exit_code"})
_RECORDING = frozenset({"warn_at", "critical_at"})
# In the order of the help screen.
_OPTIONS: dict[str, Any] = {
    "limit": Limit,
    "gpu_limit": GpuLimit,
    "warn_at": WarnAt,
    "critical_at": CriticalAt,
    "model_params": ModelParams,
    "max_growth": MaxGrowth,
    "max_peak": MaxPeak,
    "max_variation": MaxVariation,
    "after_step": AfterStep,
    "after_time": AfterTime,
    "max_tensors_growth": MaxTensorsGrowth,
    "fail_on": FailOnOption,
    "inconclusive": InconclusiveOption,
    "exit_code": ExitCodeOption,
    "junitxml": JunitXml,
    "markdown": Markdown,
}
# Those that the environment and pyproject.toml may give as well.
_SETTLED = tuple(n for n in _OPTIONS if n not in {"model_params", "junitxml", "markdown"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What was settled: budgets, what fails, and where CI's reports go."""

    budgets: tuple[Budget, ...] = ()
    fail_on: frozenset[FailOn] = DEFAULT_FAIL_ON
    inconclusive: Inconclusive = Inconclusive.FAIL
    decider: Decider = Decider.COMMAND
    limit: str | None = None
    gpu_limit: str | None = None
    thresholds: tuple[Threshold, ...] = ()
    model_params: int | None = None
    junitxml: Path | None = None
    markdown: Path | None = None


def gated(
    command: Callable[..., None], *, starts: bool = False, records: bool = False
) -> Callable[..., None]:
    """`command` with the gate's options on its command line in the place of its `gate`.

    starts: it starts a command of the user's, so that there is `--exit-code`. records: it watches
    memory while it grows, so that there are `--warn-at` and `--critical-at`.
    """
    signature = inspect.signature(command, eval_str=True)
    absent = (frozenset() if starts else _STARTING) | (frozenset() if records else _RECORDING)
    options = [name for name in _OPTIONS if name not in absent]
    own = list(signature.parameters.values())
    at = next(n for n, parameter in enumerate(own) if parameter.name == "gate")
    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_OPTIONS[name]
        )
        for name in options
    ]
    own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]

    @functools.wraps(command)
    def settled(**given: Any) -> None:
        gate = settle(**{name: given.pop(name) for name in options})
        command(gate=gate, **given)

    shown = signature.replace(parameters=[*own[:at], *added, *own[at + 1 :]])
    settled.__signature__ = shown  # type: ignore[attr-defined]
    settled.__annotations__ = {name: p.annotation for name, p in shown.parameters.items()}
    return settled


def settle(
    *,
    model_params: str | None = None,
    junitxml: Path | None = None,
    markdown: Path | None = None,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
    **options: str | enum.Enum | Sequence[str] | None,
) -> Gate:
    """The gate by command line, environment and pyproject.toml. Raises UsageError.

    options: what the command line gave of `_SETTLED`, None where it gave nothing.
    environ, directory: os.environ and the working directory where not given.
    """
    if unknown := options.keys() - _SETTLED:
        raise TypeError(f"no such option: {', '.join(sorted(unknown))}")
    given = config_layers.gather(
        {name.replace("_", "-"): _texts(options.get(name)) for name in _SETTLED},
        os.environ if environ is None else environ,
        Path() if directory is None else directory,
    )
    return Gate(
        budgets=tuple(_budgets(given)),
        fail_on=_fail_on(given.get("fail-on")),
        inconclusive=_choice(Inconclusive, given.get("inconclusive"), Inconclusive.FAIL),
        decider=_choice(Decider, given.get("exit-code"), Decider.COMMAND),
        limit=given["limit"].only() if "limit" in given else None,
        gpu_limit=given["gpu-limit"].only() if "gpu-limit" in given else None,
        thresholds=tuple(_thresholds(given)),
        model_params=None if model_params is None else parse_count("--model-params", model_params),
        junitxml=junitxml,
        markdown=markdown,
    )


def _texts(value: str | enum.Enum | Sequence[str] | None) -> Sequence[str] | None:
    """An option's values; None where it was not given."""
    if isinstance(value, enum.Enum):
        return [str(value.value)]
    return [value] if isinstance(value, str) else value or None


def _budgets(given: Mapping[str, Given]) -> Iterator[Budget]:
    since = _since(given)
    if since is not None and "max-variation" not in given:
        raise UsageError(
            f"{since[1]} says where --max-variation begins, which is not given",
            remedy="give --max-variation as well: --max-variation 500MB --after-step 90",
        )
    for name, kind in _BUDGET_KINDS.items():
        if name not in given:
            continue
        where = given[name].where
        for text in given[name].values:
            yield parse_budget(
                kind,
                text,
                given_as=where,
                since=since[0] if since is not None and kind is BudgetKind.VARIATION else None,
                metric="tensors" if name == "max-tensors-growth" else "",
            )


def _thresholds(given: Mapping[str, Given]) -> Iterator[Threshold]:
    for name, level in _LEVELS.items():
        if name in given:
            for text in given[name].values:
                yield parse_threshold(level, text, given_as=given[name].where)


def _since(given: Mapping[str, Given]) -> tuple[Stretch, str] | None:
    if "after-step" in given and "after-time" in given:
        raise UsageError(
            f"{given['after-step'].where} and {given['after-time'].where} contradict each other",
            remedy="give one of them",
        )
    if "after-time" in given:
        text, where = given["after-time"].only(), given["after-time"].where
        return Stretch(length=parse_seconds(text), axis=AxisKind.SECONDS), where
    if "after-step" not in given:
        return None
    text, where = given["after-step"].only(), given["after-step"].where
    try:
        step = float(text.replace(",", "").replace("_", ""))
    except ValueError as error:
        message = f"{where} {printable(text)!r} is no step"
        raise UsageError(message, remedy="write a number: --after-step 90") from error
    return Stretch(length=step, axis=AxisKind.STEP), where


def _fail_on(given: Given | None) -> frozenset[FailOn]:
    if given is None:
        return DEFAULT_FAIL_ON
    words = [word for text in given.values for word in text.split(",")]
    chosen = frozenset(_member(FailOn, word, given.where) for word in words)
    if FailOn.NEVER in chosen and len(chosen) > 1:
        raise UsageError(f"{given.where} names never and more", remedy="give never alone")
    return chosen


def _choice(of: type[_Choice], given: Given | None, default: _Choice) -> _Choice:
    return default if given is None else _member(of, given.only(), given.where)


def _member(of: type[_Choice], text: str, where: str) -> _Choice:
    try:
        return of(text.strip().lower())
    except ValueError as error:
        names = ", ".join(str(member.value) for member in of)
        raise UsageError(
            f"{where} {printable(text)!r} is not known", remedy=f"choose of {names}"
        ) from error
