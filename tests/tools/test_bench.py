"""What the benchmarks' document promises."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "bench.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def outcome(bench: ModuleType, name: str, text: str, code: int = 0) -> object:
    return bench.Outcome(name=name, text=text, code=code, took_s=1.0, command=f"python {name}")


def test_a_run_of_one_benchmark_replaces_its_section_and_keeps_the_others(
    bench: ModuleType,
) -> None:
    first = bench.merged("", [outcome(bench, "a", "old"), outcome(bench, "b", "kept")], "here")
    second = bench.merged(first, [outcome(bench, "a", "new", 1)], "there")
    assert "old" not in second
    assert second.index("## a") < second.index("new") < second.index("## b") < second.index("kept")
    assert "a bar is missed" in second
    assert bench.merged(second, [outcome(bench, "a", "new", 1)], "there") == second


def test_tables_stay_tables_and_other_lines_are_shown_as_printed(bench: ModuleType) -> None:
    text = bench.merged("", [outcome(bench, "a", "| x |\n|---|\n| 1 |\n  tail *")], "here")
    assert "\n| x |\n|---|\n| 1 |\n\n```text\n  tail *\n```" in text


def test_a_benchmark_is_run_with_its_seed_and_its_exit_status_is_kept(
    bench: ModuleType, tmp_path: Path
) -> None:
    script = tmp_path / "one.py"
    script.write_text('import sys; print(sys.argv[1:]); sys.exit(3)  # takes "--seed"\n')
    found = bench.run(script, "7", write=True)
    assert (found.text, found.code) == ("['--seed', '7']", 3)
