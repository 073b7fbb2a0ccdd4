"""Options and arguments that need no conversion, kept from Typer's.

Typer (0.29, not yet 0.26) converts the value of each parameter by a validator that pydantic builds
for it, also where nothing was given and where text is wanted. For the options of `memdiag analyze`
that takes twice as long as to import Typer.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand

_TEXTS = (str, str | None, list[str], list[str] | None)


class Command(TyperCommand):
    """A command that converts no more than it has to."""

    def get_params(self, ctx: Any) -> list[Any]:
        texts = _taking_text(self.callback) if self.callback else frozenset()
        return [spared(parameter, texts) for parameter in super().get_params(ctx)]


def spared(parameter: Any, texts: frozenset[str] = frozenset()) -> Any:
    """The parameter of a command, changed; `texts` are the names of those that take text."""
    if "process_value" in vars(parameter):
        return parameter
    convert = parameter.process_value
    is_text = parameter.name in texts

    def process(ctx: Any, value: Any) -> Any:
        if value is None and not parameter.required:
            several = getattr(parameter, "multiple", False) or parameter.nargs == -1
            value = () if several else None
        elif not (is_text and value != () and _is_text(value)):
            return convert(ctx, value)
        return value if parameter.callback is None else parameter.callback(ctx, parameter, value)

    parameter.process_value = process
    return parameter


def _taking_text(function: Callable[..., Any]) -> frozenset[str]:
    hints = typing.get_type_hints(function)
    return frozenset(name for name, hint in hints.items() if hint in _TEXTS)


def _is_text(value: Any) -> bool:
    values = value if isinstance(value, (list, tuple)) else (value,)
    return all(isinstance(one, str) for one in values)
