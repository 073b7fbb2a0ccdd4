"""Options declared once, as fields of dataclasses, and commands that take them as one parameter.

Typer (0.29, not yet 0.26) converts the value of each parameter by a validator that pydantic builds
for it, even for text and for options that were not given. For the options of `memdiag analyze` that
takes twice as long as importing Typer, and its messages are pydantic's. So Typer is given texts and
flags only, and the type of a field says how its text is converted.
"""

from __future__ import annotations

import enum
import functools
import inspect
import re
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from memdiag.cli.options import config_layers
from memdiag.errors import UsageError
from memdiag.values.sanitize import printable
from memdiag.values.units import invalid

_TEXTS = (str, str | None, list[str], list[str] | None)
_Choice = TypeVar("_Choice", bound=enum.Enum)
ALL = "--help-all"


def option(
    name: str,
    metavar: str | None,
    help: str,  # noqa: A002 - as in Typer
    *,
    short: str = "",
    default: Any = None,
    parse: Callable[[str], Any] | None = None,
    low: float | None = None,
    panel: str = "",
    typical: bool = False,
    **shown: Any,
) -> Any:
    """A field that is an option on the command line.

    parse: converts the text that was given, or a default that is text; by default the type of the
    field does. low: the least that a number may be. panel: the group of the help screen.
    typical: shown in the short help of a command with many options. shown: as in `typer.Option`.
    """
    names = (name, short) if short else (name,)
    if default not in (None, "", ()) and not shown.get("count"):
        text = default.value if isinstance(default, enum.Enum) else default
        help = f"{help}  [default: {text}]"  # noqa: A001
    shown_as = typer.Option(
        *names, metavar=metavar, help=help, rich_help_panel=_panel(panel, typical), **shown
    )
    metadata = {"option": shown_as, "parse": parse, "name": name, "low": low}
    return field(default=default, metadata=metadata)


def _panel(title: str, typical: bool) -> str:
    """The title of a group with a mark of typical options, as Typer keeps it."""
    return ("*" if typical else "") + title


def repeatable(
    name: str,
    metavar: str,
    help: str,  # noqa: A002 - as in Typer
    *,
    panel: str = "",
    typical: bool = False,
) -> Any:
    """A field, a tuple of texts, that is an option which can be given several times."""
    return option(name, metavar, help, default=(), panel=panel, typical=typical)


def flag(*names: str, help: str, panel: str = "", typical: bool = False) -> Any:  # noqa: A002
    """A field that is True if the option is given."""
    shown_as = typer.Option(*names, help=help, rich_help_panel=_panel(panel, typical))
    return field(default=False, metadata={"option": shown_as, "name": names[0]})


def choice(of: type[_Choice], text: str, where: str) -> _Choice:
    """The member with this value. Raises UsageError."""
    try:
        return of(text.strip().lower())
    except ValueError as error:
        names = [repr(str(member.value)) for member in of]
        remedy = f"the only choice is {names[0]}"
        if len(names) > 1:
            remedy = f"choose {', '.join(names[:-1])} or {names[-1]}"
        raise UsageError(f"invalid value {printable(text)!r} for {where}", remedy=remedy) from error


def number(text: str, where: str, *, low: float | None = None, whole: bool = False) -> float:
    """A number in the text, an int if `whole`. Raises UsageError. low: the least that it may be."""
    try:
        value = int(text) if whole else float(text.replace(",", ""))
    except ValueError as error:
        kind = "not a whole number" if whole else "not a number"
        raise invalid(text, where, kind, "") from error
    if low is not None and not value >= low:
        raise invalid(text, where, f"must be at least {low:g}", "")
    return value


def unfolded(function: Callable[..., None], without: Collection[str] = ()) -> Callable[..., None]:
    """`function` for Typer: parameters that are dataclasses of options become these options.

    without: fields that are not options of this command; they keep their defaults.
    """
    shown: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[Field[Any]], dict[str, Any]]] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        group = parameter.annotation
        if not is_dataclass(group):
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        options = [f for f in fields(group) if "option" in f.metadata and f.name not in without]
        hints = typing.get_type_hints(group)
        groups[name] = group, options, hints
        shown += [_parameter(one, hints[one.name]) for one in options]

    @functools.wraps(function)
    def command(**given: Any) -> None:
        for name, (group, options, hints) in groups.items():
            typed = {one.name: given.pop(one.name) for one in options}
            found = settings(options) if is_settable(group) else {}
            given[name] = group(
                **{one.name: _settled(one, hints[one.name], typed, found) for one in options}
            )
        function(**given)

    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return command


class _Flag(enum.Enum):
    """What a setting may say of a flag."""

    ON = "true"
    OFF = "false"


def key_of(one: Field[Any]) -> str:
    """The key of an option in pyproject.toml: `max-peak`."""
    return str(one.metadata["name"]).split("/")[0].removeprefix("--")


def is_settable(group: Any) -> bool:
    """Return True if pyproject.toml gives the options of this group, as far as nothing is typed."""
    return bool(getattr(group, "IS_SETTABLE", False))


def settings(options: Collection[Field[Any]]) -> dict[str, config_layers.Given]:
    """What pyproject.toml says of these options. Raises UsageError."""
    names = {key_of(one) for one in options} - config_layers.NOT_SETTABLE
    return config_layers.from_file(Path(), names)


def _settled(
    one: Field[Any], hint: Any, typed: Mapping[str, Any], found: Mapping[str, config_layers.Given]
) -> Any:
    """The value that was typed, else that of the setting, else the default."""
    given, setting = typed[one.name], found.get(key_of(one))
    if setting is None or given not in (None, [], False, 0):
        return _value(one, hint, given)
    if one.default == ():
        return setting.values
    if one.metadata["option"].count:
        return int(number(setting.only(), setting.where, low=0, whole=True))
    return _value(one, hint, setting.only(), setting.where)


def _parameter(one: Field[Any], hint: Any) -> inspect.Parameter:
    shown = one.metadata["option"]
    kind = _kind(hint)
    if typing.get_origin(hint) is tuple:
        hint = list[str] | None
    elif kind is not bool and not shown.count:
        hint = str | None
        if shown.metavar is None and kind is not None and issubclass(kind, enum.Enum):
            shown.metavar = "|".join(str(member.value) for member in kind)
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=one.default if kind is bool or shown.count else None,
        annotation=Annotated[hint, shown],
    )


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _kind(hint: Any) -> type | None:
    """The type of a field without its `| None`; None for others than plain types."""
    kinds = [one for one in typing.get_args(hint) or (hint,) if one is not type(None)]
    return kinds[0] if len(kinds) == 1 and isinstance(kinds[0], type) else None


def _value(one: Field[Any], hint: Any, given: Any, where: str = "") -> Any:
    """The value of a field. given: as Typer has it, or text of a setting. where: of the setting."""
    if one.default == ():
        return tuple(given or ())
    given = one.default if given is None else given
    if not isinstance(given, str):
        return given
    parse, kind, where = one.metadata.get("parse"), _kind(hint), where or one.metadata["name"]
    if kind is bool:
        return choice(_Flag, given, where) is _Flag.ON
    if parse is not None:
        return parse(given)
    if kind is Path:
        return Path(given)
    if kind is not None and issubclass(kind, enum.Enum):
        return choice(kind, given, where)
    if kind in {int, float}:
        return number(given, where, low=one.metadata["low"], whole=kind is int)
    return given


class Command(TyperCommand):
    """A command that converts only what needs conversion, and groups its options in its help.

    usage: what follows the name of the command in its first line.
    """

    usage: str = ""

    def get_params(self, ctx: Any) -> list[Any]:
        # (Since Python 3.14 the function that Typer makes of this one has no `__annotations__`.)
        shown = inspect.signature(self.callback).parameters.values() if self.callback else ()
        texts = frozenset(one.name for one in shown if _bare(one.annotation) in _TEXTS)
        return [unconverted(parameter, texts) for parameter in super().get_params(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ALL in (args if ctx.allow_interspersed_args else args[:1]):
            ctx.meta[ALL] = True
            args = ["--help"]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [self.usage] if self.usage else super().collect_usage_pieces(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then options by group; of many options, only the typical ones."""
        shown = list(_shown(self.get_params(ctx), ctx))
        typical = [one for one in shown if one.is_typical]
        is_short = bool(typical) and not ctx.meta.get(ALL)
        groups: dict[str, list[tuple[str, str]]] = {}
        if is_short:
            groups["Typical options"] = [(one.brief_names, one.brief_help) for one in typical]
        for one in () if is_short else shown:
            groups.setdefault(one.panel, []).append((one.names, one.help))
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)
        if is_short:
            hidden = sum(one.is_option for one in shown) - len(typical)
            formatter.write(f"\n{hidden} more options: memdiag help {ctx.command.name}\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """A row of the help screen."""

    names: str
    help: str
    panel: str
    is_typical: bool
    is_option: bool

    @property
    def brief_names(self) -> str:
        """Without what is optional in a value: `--max-peak SIZE`."""
        return re.sub(r"\[[^]]*\]|\|.*", "", self.names)

    @property
    def brief_help(self) -> str:
        """The first clause."""
        return re.split(r"[.;:](?: |$)|  \[| \(", self.help, maxsplit=1)[0] + "."


def _shown(parameters: Collection[Any], ctx: Any) -> typing.Iterator[_Shown]:
    for parameter in parameters:
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        panel = getattr(parameter, "rich_help_panel", None) or ""
        is_option = parameter.param_type_name == "option"
        title = panel.removeprefix("*") or ("Options" if is_option else "Arguments")
        names = record[0] if is_option else str(parameter.metavar or parameter.name)
        text = record[1].replace("  [required]", "")
        yield _Shown(
            names=names,
            help=text,
            panel=title,
            is_typical=panel.startswith("*"),
            is_option=is_option,
        )


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
        elif isinstance(value, int):  # a flag, or how often one was given
            pass
        elif not (is_text and value != () and _is_text(value)):
            return convert(ctx, value)
        return value if parameter.callback is None else parameter.callback(ctx, parameter, value)

    parameter.process_value = process
    return parameter


def _is_text(value: Any) -> bool:
    values = value if isinstance(value, (list, tuple)) else (value,)
    return all(isinstance(one, str) for one in values)
