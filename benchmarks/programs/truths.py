"""What is known of each program in advance: truths.toml."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
CASES = HERE / "cases"
_LAST_WORDS = re.compile(r"(\d+) \w+ in (\d+(?:\.\d+)?) s\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a program does; truths.toml says what each of these is."""

    name: str
    style: str
    step: str
    axis: str = "step"
    bytes: float = 0.0
    kind: tuple[str, ...] = ()
    process: tuple[str, ...] = ("main",)
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    note: str = ""

    @property
    def leaks(self) -> bool:
        return bool(self.kind)

    def missing(self) -> str:
        """The first package that it needs and that is not installed; "" if there is none."""
        return next((name for name in self.needs if not importlib.util.find_spec(name)), "")

    def command(self, seconds: float) -> list[str]:
        return [sys.executable, str(CASES / f"{self.name}.py"), f"{seconds:g}"]


def all_truths() -> dict[str, Truth]:
    """By name, in the order of styles. What has no truth or no program is an error."""
    raw = tomllib.loads((HERE / "truths.toml").read_text(encoding="utf-8"))
    lists = {"kind", "process", "needs", "options"}
    truths = {
        name: Truth(name=name, **{k: tuple(v) if k in lists else v for k, v in entry.items()})
        for name, entry in raw.items()
    }
    programs = {path.stem for path in CASES.glob("*.py") if not path.name.startswith("_")}
    if unmatched := programs.symmetric_difference(truths):
        sys.exit(f"without a program or without a truth: {', '.join(sorted(unmatched))}")
    return dict(sorted(truths.items(), key=lambda item: (item[1].style, item[1].leaks, item[0])))


def last_words(output: str) -> tuple[int, float] | None:
    """Rounds and seconds that a program tells at its end, `300 steps in 20.1 s`."""
    told = _LAST_WORDS.findall(output)
    return (int(told[-1][0]), float(told[-1][1])) if told and float(told[-1][1]) > 0 else None
