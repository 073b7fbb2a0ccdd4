"""Where options come from: command line before environment before pyproject.toml."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest
from commandline import called

from memdiag.cli.options.config_layers import KEYS, NOT_SETTABLE
from memdiag.cli.options.declare import key_of
from memdiag.cli.options.exit_codes import Decider, FailOn, Inconclusive
from memdiag.cli.options.gate import Gate, GateOptions, settle
from memdiag.cli.options.outputs import ReportOptions
from memdiag.cli.options.page import PageOptions
from memdiag.cli.options.recording_options import RecordingOptions
from memdiag.errors import UsageError
from memdiag.values.budgets import BudgetKind


def toml(directory: Path, text: str) -> Path:
    (directory / "pyproject.toml").write_text(text, encoding="utf-8")
    return directory


def gate(directory: Path, environ: dict[str, str] | None = None, **given: object) -> Gate:
    options = GateOptions(**given)  # type: ignore[arg-type]
    return settle(options, environ=environ or {}, directory=directory)


def peaks(found: Gate) -> list[tuple[str, float]]:
    return [(b.metric, b.amount) for b in found.budgets if b.kind is BudgetKind.PEAK]


def test_nothing_given_is_the_default(tmp_path: Path) -> None:
    assert gate(tmp_path) == Gate()


def test_command_line_goes_before_environment_before_file(tmp_path: Path) -> None:
    toml(tmp_path, '[tool.memdiag]\nmax-peak = "1GB"\n')
    environ = {"MEMDIAG_MAX_PEAK": "2GB"}
    assert peaks(gate(tmp_path)) == [("", 1e9)]
    assert peaks(gate(tmp_path, environ)) == [("", 2e9)]
    assert peaks(gate(tmp_path, environ, max_peak=("3GB",))) == [("", 3e9)]


def test_overriding_one_option_keeps_the_others(tmp_path: Path) -> None:
    toml(tmp_path, '[tool.memdiag]\nmax-peak = "1GB"\nmax-growth = "1MB/step"\n')
    found = gate(tmp_path, max_peak=("3GB",))
    assert [b.text for b in found.budgets] == [
        "max-growth in pyproject.toml 1MB/step",
        "--max-peak 3GB",
    ]


@pytest.mark.parametrize(
    "value",
    ['"rss=1GB"', '["rss=1GB"]', "{ rss = '1GB' }"],
)
def test_file_takes_text_list_and_table(tmp_path: Path, value: str) -> None:
    toml(tmp_path, f"[tool.memdiag]\nmax-peak = {value}\n")
    assert peaks(gate(tmp_path)) == [("rss", 1e9)]


def test_every_key_is_taken_from_the_file(tmp_path: Path) -> None:
    toml(
        tmp_path,
        """
        [tool.memdiag]
        max_growth = "1GB/50steps"
        max-variation = "500MB"
        after-step = 90
        max-tensors-growth = "0/epoch"
        fail-on = ["leak", "budget"]
        inconclusive = "pass"
        exit-code = "verdict"
        limit = "16GB"
        """,
    )
    found = gate(tmp_path)
    assert [b.kind.value for b in found.budgets] == ["growth", "variation", "growth"]
    assert found.budgets[1].since is not None
    assert found.budgets[1].since.length == 90
    assert found.budgets[2].metric == "tensors"
    assert found.fail_on == {FailOn.LEAK, FailOn.BUDGET}
    assert (found.inconclusive, found.decider) == (Inconclusive.PASS, Decider.VERDICT)
    assert found.limit_bytes == 16 * 10**9


def test_unknown_key_is_an_error_that_names_the_nearest(tmp_path: Path) -> None:
    toml(tmp_path, '[tool.memdiag]\nmax-grwoth = "1GB/step"\n')
    with pytest.raises(UsageError, match="unknown key 'max-grwoth'") as caught:
        gate(tmp_path)
    assert "did you mean 'max-growth'?" in caught.value.remedy


def test_misspelled_variable_is_an_error_and_other_variables_are_not(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown environment variable MEMDIAG_MAX_PEEK") as caught:
        gate(tmp_path, {"MEMDIAG_MAX_PEEK": "1GB"})
    assert "MEMDIAG_MAX_PEAK" in caught.value.remedy
    assert gate(tmp_path, {"MEMDIAG_CHANNEL": "/tmp/x"}) == Gate()


def test_variable_holds_several_values(tmp_path: Path) -> None:
    environ = {"MEMDIAG_MAX_PEAK": "rss=1GB, vram=2GB"}
    assert peaks(gate(tmp_path, environ)) == [("rss", 1e9), ("vram", 2e9)]


@pytest.mark.parametrize("text", ["", "[tool.other]\nx = 1\n", "this is no TOML at all ["])
def test_file_without_memdiag_is_ignored(tmp_path: Path, text: str) -> None:
    assert gate(toml(tmp_path, text)) == Gate()


@pytest.mark.parametrize(
    "text",
    [
        "[tool.memdiag\n",
        "[tool]\nmemdiag = 3\n",
        "[tool.memdiag]\nmax-peak = true\n",
        "[tool.memdiag]\nmax-peak = [['1GB']]\n",
        "[tool.memdiag]\nmax-peak = 'lots'\n",
        "[tool.memdiag]\nafter-step = 90\n",
        "[tool.memdiag]\ninconclusive = 'maybe'\n",
        "[tool.memdiag]\ninconclusive = ['pass', 'fail']\n",
        "[tool.memdiag]\nfail-on = 'sunday'\n",
        "[tool.memdiag]\nfail-on = ['never', 'leak']\n",
        "[tool.memdiag]\nmax-variation = '1GB'\nafter-step = 'soon'\n",
        "[tool.memdiag]\nmax-variation = '1GB'\nafter-step = 1\nafter-time = '1min'\n",
    ],
)
def test_invalid_configuration_is_a_usage_error_with_a_remedy(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        gate(toml(tmp_path, text))
    assert caught.value.remedy


def test_nearest_file_above_counts_up_to_the_root_of_the_repository(tmp_path: Path) -> None:
    toml(tmp_path, '[tool.memdiag]\nmax-peak = "1GB"\n')
    below = tmp_path / "below" / "deeper"
    below.mkdir(parents=True)
    toml(below, "[tool.other]\n")
    assert peaks(gate(below)) == [("", 1e9)]
    (tmp_path / "below" / ".git").mkdir()
    assert gate(below) == Gate()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_file_above_of_another_user_does_not_count(tmp_path: Path) -> None:
    toml(tmp_path, '[tool.memdiag]\nmax-peak = "1GB"\n')
    os.chown(tmp_path / "pyproject.toml", 12345, -1)
    below = tmp_path / "below"
    below.mkdir()
    assert gate(below) == Gate()
    os.chown(below, 12345, -1)
    assert peaks(gate(below)) == [("", 1e9)]


def test_options_of_run_are_keys_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    toml(tmp_path, "[tool.memdiag]\nquiet = true\ninterval = '50ms'\nmax-peak = '1GB'\n")
    log = tmp_path / "log.csv"
    log.write_text("step,rss_mb\n" + "".join(f"{n},500\n" for n in range(60)))
    done = called("analyze", log)
    assert done.stdout.startswith("memdiag: STABLE")
    assert done.stdout.count("\n") == 1
    shown = called("config").stdout
    assert "interval  50ms   pyproject.toml" in shown
    assert "max-peak  1GB    pyproject.toml" in shown
    assert " after-step " in called("config", "-v").stdout


@pytest.mark.parametrize(
    "text", ["quiet = 'maybe'", "interval = 'soon'", "color = 'pink'", "output = 3.5", "tags = 1"]
)
def test_invalid_keys_name_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    toml(tmp_path, f"[tool.memdiag]\n{text}\n")
    done = called("run", "--", "nosuchprogramatall")
    assert done.returncode == 2
    assert "pyproject.toml" in done.stderr or text.startswith(("interval", "output"))


def test_keys_are_the_options_of_run_and_watch() -> None:
    groups = (GateOptions, RecordingOptions, ReportOptions, PageOptions)
    options = {key_of(one) for group in groups for one in fields(group) if "name" in one.metadata}
    assert options - NOT_SETTABLE | {"dir"} == KEYS
