"""Options declared once, as fields of dataclasses, and commands that take them as one parameter.

Typer (0.29, not yet 0.26) converts the value of each parameter by a validator that pydantic builds
for it, even for text and for options that were not given. For the options of `memdiag analyze` that
takes twice as long as importing Typer, so `Command` converts only what needs conversion.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Collection
from dataclasses import Field, field, fields, is_dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

_TEXTS = (str, str | None, list[str], list[str] | None)


def option(
    name: str,
    metavar: str | None,
    help: str,  # noqa: A002 - as in Typer
    *,
    short: str = "",
    default: Any = None,
    parse: Callable[[str], Any] | None = None,
    **shown: Any,
) -> Any:
    """A field that is an option on the command line.

    parse: converts the text that was given, or a default that is text. shown: as in `typer.Option`.
    """
    names = (name, short) if short else (name,)
    shown_as = typer.Option(*names, metavar=metavar, help=help, **shown)
    return field(default=default, metadata={"option": shown_as, "parse": parse, "name": name})


def repeatable(name: str, metavar: str, help: str) -> Any:  # noqa: A002 - as in Typer
    """A field, a tuple of texts, that is an option which can be given several times."""
    return option(name, metavar, help, default=())


def flag(*names: str, help: str) -> Any:  # noqa: A002 - as in Typer
    """A field that is True if the option is given."""
    return field(default=False, metadata={"option": typer.Option(*names, help=help), "parse": None})


def unfolded(function: Callable[..., None], without: Collection[str] = ()) -> Callable[..., None]:
    """`function` for Typer: parameters that are dataclasses of options become these options.

    without: fields that are not options of this command; they keep their defaults.
    """
    shown: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[Field[Any]]]] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        group = parameter.annotation
        if not is_dataclass(group):
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        options = [f for f in fields(group) if "option" in f.metadata and f.name not in without]
        groups[name] = group, options
        hints = typing.get_type_hints(group)
        shown += [_parameter(one, hints[one.name]) for one in options]

    @functools.wraps(function)
    def command(**given: Any) -> None:
        for name, (group, options) in groups.items():
            given[name] = group(**{one.name: _value(one, given.pop(one.name)) for one in options})
        function(**given)

    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return command


def _parameter(one: Field[Any], hint: Any) -> inspect.Parameter:
    if typing.get_origin(hint) is tuple:
        hint = list[str] | None
    elif one.metadata["parse"] is not None:
        hint = str if one.default is not None else str | None
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if one.default == () else one.default,
        annotation=Annotated[hint, one.metadata["option"]],
    )


def _value(one: Field[Any], given: Any) -> Any:
    if one.default == ():
        return tuple(given or ())
    parse = one.metadata["parse"]
    return given if given is None or parse is None else parse(given)


class Command(TyperCommand):
    """A command that converts only what needs conversion."""

    def get_params(self, ctx: Any) -> list[Any]:
        hints = typing.get_type_hints(self.callback) if self.callback else {}
        texts = frozenset(name for name, hint in hints.items() if hint in _TEXTS)
        return [unconverted(parameter, texts) for parameter in super().get_params(ctx)]


def unconverted(parameter: Any, texts: frozenset[str] = frozenset()) -> Any:
    """The parameter, changed to pass texts on as they are; texts: names of those that take text."""
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


def _is_text(value: Any) -> bool:
    values = value if isinstance(value, (list, tuple)) else (value,)
    return all(isinstance(one, str) for one in values)
