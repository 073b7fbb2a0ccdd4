"""The doctor's screen and document."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from memdiag.report.formats.doctor import document, render, verdict
from memdiag.values.measurements import Ability, Check

HOST = Check(
    name="host_memory", title="host memory", ability=Ability.YES, text="RSS of every process"
)
CHECKS = [
    HOST,
    Check(
        name="machine",
        title="this machine",
        ability=Ability.FACT,
        text="{total_bytes} RAM; {used_bytes} in use",
        facts={"total_bytes": 16_000_000_000, "used_bytes": None},
    ),
    Check(
        name="gpu_0",
        title="GPU 0",
        ability=Ability.PARTLY,
        text="{name}",
        facts={"name": "NVIDIA [red]A100[/red] \x1b[2J{total_bytes}\nnext"},
        remedy="start the container with --pid=host",
    ),
]


def shown(checks: list[Check], width: int = 80, *, ascii_only: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width, soft_wrap=True, highlight=False)
    console.print(render(checks, width=width, ascii_only=ascii_only))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_screen_says_what_can_be_measured_and_how_to_get_the_rest() -> None:
    assert shown(CHECKS) == (
        " Host memory can be measured here, GPU memory can partly be measured.\n"
        "\n"
        " yes     host memory        RSS of every process\n"
        " -       this machine       16.0 GB RAM; ? in use\n"
        " partly  GPU 0              NVIDIA [red]A100[/red] \\x1b[2J{total_bytes}\\nnext\n"
        "                            hint: start the container with --pid=host\n"
    )


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    assert max(len(line) for line in shown(CHECKS, width).splitlines()) <= width


def test_ascii_screens_get_ascii() -> None:
    named = Check(
        name="gpu_0", title="GPU 0", ability=Ability.YES, text="{name}", facts={"name": "Ü"}
    )
    assert shown([HOST, named], ascii_only=True).isascii()


def test_the_document_has_raw_numbers() -> None:
    plain = json.loads(json.dumps(document(CHECKS)))
    assert plain["schema_version"] == 1
    assert (plain["exit_code"], plain["host_memory"], plain["device_memory"]) == (0, True, "partly")
    assert plain["checks"][1]["facts"]["total_bytes"] == 16_000_000_000


@pytest.mark.parametrize("ability", [a for a in Ability if a is not Ability.YES])
def test_without_host_memory_the_exit_code_is_4(ability: Ability) -> None:
    broken = Check(name="host_memory", title="host memory", ability=ability, text="unreadable")
    assert verdict([broken]) == 4
    assert "cannot be measured here" in shown([broken])


@pytest.mark.parametrize("ability", list(Ability))
def test_every_ability_has_a_word(ability: Ability) -> None:
    assert "some text" in shown(
        [HOST, Check(name="x", title="x", ability=ability, text="some text")]
    )
