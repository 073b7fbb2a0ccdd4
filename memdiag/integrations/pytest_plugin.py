"""pytest plugin: tests that fail if what they do leaks memory.

    @pytest.mark.memdiag
    def test_step():
        train_one_step()

    def test_training(memdiag_loop):
        for step in memdiag_loop():
            train_one_step()

The body is repeated until it is settled whether memory grows. Every pytest run on the machine loads
this file, so it imports almost nothing until a test needs it.
"""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from memdiag.integrations.repeat_until_settled import Metric, Settled, Terms

_PROPERTY = "memdiag"
_MARKER = (
    "memdiag(steps=4000, seconds=10, metric=None, max_growth=None, inconclusive='warn'): "
    "repeat the test until it is settled whether it leaks, and fail if it leaks"
)
_INCONCLUSIVE = ("warn", "fail", "pass")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a marked test repeatedly instead of once."""
    marker = pyfuncitem.get_closest_marker("memdiag")
    if marker is None:
        return None
    if marker.args:
        pytest.fail("the memdiag marker takes keyword arguments only", pytrace=False)
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        pytest.fail("memdiag can't repeat a coroutine: use memdiag_loop inside it", pytrace=False)
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    for _ in _repeated(pyfuncitem, dict(marker.kwargs)):
        pyfuncitem.obj(**arguments)
    return True


@pytest.fixture
def memdiag_loop(request: pytest.FixtureRequest) -> Callable[..., Iterator[int]]:
    """`for step in memdiag_loop(...)`: repeats the loop's body; same arguments as the marker."""
    return lambda **options: _repeated(request.node, options)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List the tests that passed although they are inconclusive."""
    lines = [
        f"{report.nodeid}: {text}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for key, text in report.user_properties
        if key == _PROPERTY
    ]
    if lines:
        terminalreporter.section("memdiag: inconclusive")
        for line in lines:
            terminalreporter.line(line)


def _repeated(item: Any, options: dict[str, Any]) -> Iterator[int]:
    """The numbers of the calls to make; fails the test at the end if it leaks."""
    from memdiag.integrations.repeat_until_settled import Repetition

    known = inspect.signature(_terms).parameters
    unknown = sorted(options.keys() - known)
    if unknown:
        names = ", ".join(known)
        pytest.fail(f"unknown memdiag option {unknown[0]!r}; choose from {names}", pytrace=False)
    terms, inconclusive = _terms(**options)
    repetition = Repetition(terms)
    with _quiet_surroundings() as forget:
        for call in repetition:
            yield call
            forget()
    if repetition.settled is not None:
        _conclude(item, repetition.settled, inconclusive)


def _conclude(item: Any, settled: Settled, inconclusive: str) -> None:
    from memdiag.values.verdict import Verdict

    if settled.verdict is Verdict.STABLE:
        return
    if settled.verdict is Verdict.INCONCLUSIVE and inconclusive != "fail":
        if inconclusive == "warn":
            remedy = " (give it more seconds, or fewer steps)" if settled.metric else ""
            text = settled.why + remedy
            item.user_properties.append((_PROPERTY, text))
        return
    from memdiag.integrations.pytest_report import report

    shown = report(settled, item.name) if settled.metric else settled.why
    pytest.fail(f"memory after {settled.calls:,} calls:\n{shown}", False)


def _terms(
    *,
    steps: object = None,
    seconds: object = None,
    metric: str | Sequence[str] | None = None,
    max_growth: str | float | None = None,
    inconclusive: str = "warn",
) -> tuple[Terms, str]:
    """The terms in the keywords of the marker, and what to do if the test is inconclusive."""
    from memdiag.integrations.repeat_until_settled import Terms

    given: dict[str, Any] = {}
    if steps is not None:
        given["steps"] = given["steps_to_stay"] = _positive("steps", steps, int)
    if seconds is not None:
        given["seconds"] = _positive("seconds", seconds, float)
    if metric is not None:
        given["metrics"] = _metrics(metric)
    if max_growth is not None:
        given["allowed"] = _allowed(max_growth)
    if inconclusive not in _INCONCLUSIVE:
        known = ", ".join(_INCONCLUSIVE)
        pytest.fail(f"invalid inconclusive={inconclusive!r}; choose from {known}", pytrace=False)
    return Terms(**given), inconclusive


def _positive(name: str, given: object, kind: type[int] | type[float]) -> float:
    if isinstance(given, (int, float)) and kind(given) == given > 0:
        return kind(given)
    number = "whole number" if kind is int else "number"
    pytest.fail(f"invalid {name}={given!r}: not a {number} above 0", pytrace=False)


def _metrics(names: str | Sequence[str]) -> tuple[Metric, ...]:
    from memdiag.integrations.repeat_until_settled import Metric

    wanted = {names} if isinstance(names, str) else set(names)
    known = {metric.value: metric for metric in Metric}
    unknown = wanted - known.keys()
    if unknown or not wanted:
        text = f"unknown metric {sorted(unknown)[0]!r}" if unknown else "no metric is given"
        pytest.fail(f"{text}; choose from {', '.join(known)}", pytrace=False)
    return tuple(metric for metric in Metric if metric.value in wanted)


def _allowed(amount: str | float) -> dict[Metric, float]:
    """Growth per call from `10KB`, `1MB/1000calls` or a number of bytes."""
    from memdiag.errors import UsageError
    from memdiag.integrations.repeat_until_settled import Metric
    from memdiag.probe.ring_format import BLOCK_BYTES
    from memdiag.values.budgets import BudgetKind, parse_budget
    from memdiag.values.measurements import AxisKind

    text = str(amount)
    budget = None
    with suppress(UsageError):
        budget = parse_budget(
            BudgetKind.GROWTH, text if "/" in text else f"{text}/call", given_as="max_growth"
        )
    if budget is None:
        pytest.fail(f"invalid max_growth={amount!r}: write 10KB or 1MB/1000calls", pytrace=False)
    per = budget.per
    if per is None or per.axis not in {AxisKind.REQUEST, AxisKind.STEP}:
        pytest.fail(f"max_growth {text!r} is not per call", pytrace=False)
    each = budget.amount / per.length
    return {m: each / BLOCK_BYTES if m is Metric.BLOCKS else each for m in Metric}


@contextmanager
def _quiet_surroundings() -> Iterator[Callable[[], None]]:
    """Keep pytest's records of warnings and logs from growing with every call."""
    from memdiag.integrations.repeat_until_settled import frozen_objects

    with frozen_objects(), warnings.catch_warnings():
        warnings.showwarning = lambda *_, **__: None
        yield _forget_logs


def _forget_logs() -> None:
    """Drop the log records that pytest has captured; those of the last call would be shown."""
    for handler in logging.getLogger().handlers:
        reset = getattr(handler, "reset", None)
        if type(handler).__name__ == "LogCaptureHandler" and callable(reset):
            reset()
