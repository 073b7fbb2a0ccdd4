"""All trainings of a machine, a line each, and its memory."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.console import Group
from rich.text import Text

from memdiag.report.text import numbers, text_layout
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column
from memdiag.values.measurements import Unit
from memdiag.values.overview import MemoryState, Overview, TrainingState
from memdiag.values.verdict import Verdict

_COLORS = {
    Verdict.LEAK: "bold red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.WARMUP: "cyan",
    Verdict.STABLE: "green",
}
_USER_CELLS, _LEAST_CELLS = 12, 16
_GAP = 2
_PATH = re.compile(r"^[^\s']*/")  # of the interpreter
_MODEL_CELLS = 30


def table(found: Overview, screen: Screen) -> Group:
    """The trainings, leaks first; then host memory and GPUs."""
    lines = [text_layout.rule(_title(found), screen.width, "-" if screen.ascii_only else "─")]
    lines += _trainings(found, screen)
    lines.append(Text(""))
    lines += _memory(found, screen)
    return Group(*lines)


def _title(found: Overview) -> str:
    running = sum(not one.has_ended for one in found.trainings)
    number = f"{running} training{'' if running == 1 else 's'}"
    return f"memdiag: {number}, watched for {numbers.duration(found.watched_s)}"


def _trainings(found: Overview, screen: Screen) -> list[Text]:
    shown = found.trainings
    if not shown:
        return [Text(" no training is running")]
    columns = [
        Column("pid", [Text(str(one.pid)) for one in shown], right=True),
        Column("user", [Text(screen.show(one.user, cells=_USER_CELLS)) for one in shown]),
        Column("verdict", [_verdict(one) for one in shown]),
        Column("RSS", [Text(_size(one.rss_bytes)) for one in shown], right=True),
        Column("VRAM", [Text(_size(one.vram_bytes)) for one in shown], right=True),
        Column("GPU", [Text(_gpus(one)) for one in shown]),
        Column("growth", [Text(_rate(one)) for one in shown], right=True),
        Column("full in", [Text(_left(one.full_in_s)) for one in shown], right=True),
    ]
    columns = [one for one in columns if any(cell.plain for cell in one.cells)]
    taken = sum(_GAP + max(cell_len(one.title), *map(_cells, one.cells)) for one in columns)
    cells = max(_LEAST_CELLS, screen.width - taken - _GAP)
    commands = [Text(screen.show(_PATH.sub("", one.command), cells=cells)) for one in shown]
    return text_layout.table([*columns, Column("command", commands)], gap=_GAP)


def _cells(cell: Text) -> int:
    return cell.cell_len


def _memory(found: Overview, screen: Screen) -> list[Text]:
    pools = found.memory
    columns = [
        Column("memory", [Text(screen.show(one.name)) for one in pools]),
        Column("used", [Text(_size(one.used_bytes)) for one in pools], right=True),
        Column("of", [Text(_size(one.total_bytes)) for one in pools], right=True),
        Column("growth", [Text(_pool_rate(one)) for one in pools], right=True),
        Column("full in", [Text(_left(one.full_in_s)) for one in pools], right=True),
        Column("", [Text(screen.show(one.model, cells=_MODEL_CELLS)) for one in pools]),
    ]
    return text_layout.table(columns, gap=_GAP) if pools else []


def _verdict(one: TrainingState) -> Text:
    if one.has_ended:
        return Text(f"ended ({one.verdict.value.upper()})", "dim")
    if one.metric == "":
        return Text("collecting", "dim")
    word = "no verdict yet" if one.verdict is Verdict.INCONCLUSIVE else one.verdict.value.upper()
    return Text(word, _COLORS[one.verdict])


def _rate(one: TrainingState) -> str:
    if one.verdict in (Verdict.STABLE, Verdict.WARMUP):
        return ""
    if one.growth_bytes_per_step is not None:
        return f"{numbers.signed(one.growth_bytes_per_step, Unit.BYTES)}/step"
    return _per_minute(one.growth_bytes_per_s)


def _pool_rate(one: MemoryState) -> str:
    return _per_minute(one.growth_bytes_per_s) if one.verdict is Verdict.LEAK else ""


def _per_minute(per_s: float | None) -> str:
    return "" if per_s is None else f"{numbers.signed(60 * per_s, Unit.BYTES)}/min"


def _gpus(one: TrainingState) -> str:
    return ",".join(share.gpu.removeprefix("GPU ") for share in one.gpus)


def _size(size: int | None) -> str:
    return "" if size is None else numbers.size(size)


def _left(seconds: float | None) -> str:
    return "" if seconds is None else numbers.about(seconds)
