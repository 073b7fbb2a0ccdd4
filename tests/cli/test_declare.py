"""Options arrive in a command as they are declared, converted or not."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from memdiag.cli.options.declare import Command, flag, option, unfolded


class Taste(enum.Enum):
    SWEET = "sweet"
    SOUR = "sour"


def given_to_a_command(*arguments: str) -> tuple[dict[str, Any], str]:
    """What a command got, and what was printed, as on an error."""
    got: dict[str, Any] = {}
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)

    @alone.command(cls=Command)
    def eat(
        files: list[str],
        name: Annotated[str, typer.Option()] = "",
        of: Annotated[list[str] | None, typer.Option()] = None,
        taste: Annotated[Taste | None, typer.Option()] = None,
        path: Annotated[Path | None, typer.Option()] = None,
        number: Annotated[int | None, typer.Option(min=1)] = None,
        size: Annotated[float | None, typer.Option()] = None,
        *,
        hot: Annotated[bool | None, typer.Option("--hot/--cold")] = None,
    ) -> None:
        got.update(locals())

    result = CliRunner().invoke(alone, arguments)
    got.pop("got", None)
    return got, result.output


def test_default_of_an_option_that_is_not_given() -> None:
    got, _ = given_to_a_command("a")
    assert got.pop("files") == ["a"]
    assert got.pop("name") == ""
    assert len(got) == 6
    assert set(got.values()) == {None}


def test_given_values_have_the_declared_type() -> None:
    options = "--name n --of x --of y --taste sour --path /tmp/p --number 3 --size 1e3 --cold"
    got, _ = given_to_a_command("a", "b c", *options.split())
    assert got == {
        "files": ["a", "b c"],
        "name": "n",
        "of": ["x", "y"],
        "taste": Taste.SOUR,
        "path": Path("/tmp/p"),
        "number": 3,
        "size": 1000.0,
        "hot": False,
    }


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "Missing argument"),
        (("a", "--taste", "bitter"), "--taste"),
        (("a", "--number", "0"), "--number"),
        (("a", "--size", "big"), "--size"),
    ],
)
def test_invalid_values_are_refused(arguments: tuple[str, ...], complaint: str) -> None:
    got, printed = given_to_a_command(*arguments)
    assert got == {}
    assert complaint in printed


@dataclass(frozen=True, slots=True, kw_only=True)
class Meal:
    size: int = option("--size", "N", "How much.", default="2", parse=int)
    sides: tuple[str, ...] = option("--side", "NAME", "Repeatable.", default=())
    hot: bool = flag("--hot", help="Heated.")
    cooked_by: str = "nobody"


def ordered(*arguments: str, without: tuple[str, ...] = ()) -> tuple[Meal | None, str]:
    """The meal that a command got, and what was printed."""
    got: list[Meal] = []
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)

    def order(meal: Meal) -> None:
        got.append(meal)

    alone.command(cls=Command)(unfolded(order, without))
    result = CliRunner().invoke(alone, arguments)
    return (got[0] if got else None), result.output


@pytest.mark.parametrize(
    ("arguments", "meal"),
    [
        ((), {"size": 2}),
        (("--size", "3", "--hot"), {"size": 3, "hot": True}),
        (("--side", "a", "--side", "b"), {"size": 2, "sides": ("a", "b")}),
    ],
)
def test_fields_of_a_dataclass_are_options(
    arguments: tuple[str, ...], meal: dict[str, object]
) -> None:
    assert ordered(*arguments)[0] == Meal(**meal)  # type: ignore[arg-type]


def test_excluded_field_is_not_an_option_and_keeps_its_default() -> None:
    assert "--hot" in ordered("--help")[1]
    assert "--hot" not in ordered("--help", without=("hot",))[1]
    assert ordered(without=("hot",))[0] == Meal(size=2)
    assert "No such option" in ordered("--hot", without=("hot",))[1]
