"""`memdiag analyze` from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from memdiag.cli.app import main

FLAT = "step,rss_mb\n" + "".join(f"{n},{5000 + n % 3}\n" for n in range(300))
LEAK = "step,vram_mb\n" + "".join(f"{n},{5000 + max(0, n - 500) * 30}\n" for n in range(1500))
SHORT = "step,rss_mb\n" + "".join(f"{10 * n},{5000 + 1600 * n}\n" for n in range(7))


@dataclass(frozen=True, kw_only=True)
class Done:
    """How a call ended."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls the command line in this process."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["memdiag", "analyze", *arguments])
        code = main()
        out, err = capsys.readouterr()
        return Done(returncode=code, stdout=out, stderr=err)

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A flat, a leaking and a short recording, and one that cannot be read."""
    for name, text in (("flat", FLAT), ("leak", LEAK), ("short", SHORT)):
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "broken.csv").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(300))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "code", "word"), [("flat", 0, "STABLE"), ("leak", 1, "LEAK"), ("short", 3, "INCONCL")]
)
def test_verdict_is_printed_and_decides_the_exit_code(
    run: Run, folder: Path, name: str, code: int, word: str
) -> None:
    done = run(str(folder / f"{name}.csv"))
    assert done.returncode == code
    assert word in done.stdout
    assert done.stderr == ""


def test_stdout_has_only_json(run: Run, folder: Path) -> None:
    done = run("--json", str(folder / "leak.csv"))
    document = json.loads(done.stdout)
    assert (document["verdict"], document["exit_code"], done.returncode) == ("leak", 1, 1)
    assert document["recordings"][0]["series"][0]["metric"] == "vram_bytes"


def test_json_file_comes_with_the_report(run: Run, folder: Path) -> None:
    target = folder / "out.json"
    done = run("--json-file", str(target), str(folder / "flat.csv"))
    assert "STABLE" in done.stdout
    assert json.loads(target.read_text())["verdict"] == "stable"


def test_json_file_that_cannot_be_written_is_an_error(run: Run, folder: Path) -> None:
    done = run("--json-file", str(folder / "no" / "out.json"), str(folder / "flat.csv"))
    assert done.returncode == 2
    assert "directory does not exist" in done.stderr


def test_unreadable_file_is_named_and_the_others_are_judged(run: Run, folder: Path) -> None:
    done = run(str(folder / "broken.csv"), str(folder / "flat.csv"))
    assert done.returncode == 2
    assert "STABLE" in done.stdout
    assert "broken.csv" in done.stderr
    assert "PNG" in done.stderr
    done = run("--json", str(folder / "broken.csv"), str(folder / "flat.csv"))
    document = json.loads(done.stdout)
    assert [r["verdict"] for r in document["recordings"]] == ["stable"]
    assert document["failures"][0]["source"].endswith("broken.csv")
    assert "PNG" in done.stderr


def test_directories_and_patterns_are_expanded(run: Run, folder: Path) -> None:
    done = run("--json", str(folder))
    assert len(json.loads(done.stdout)["recordings"]) == 3
    done = run("--json", str(folder / "*l*.csv"))
    names = [Path(r["source"]).name for r in json.loads(done.stdout)["recordings"]]
    assert names == ["flat.csv", "leak.csv"]


def test_standard_input_is_read() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memdiag", "analyze", "-", "--json"],
        input=FLAT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["recordings"][0]["source"] == "-"


def test_inconclusive_can_pass(run: Run, folder: Path) -> None:
    assert run("--inconclusive", "pass", str(folder / "short.csv")).returncode == 0


def test_columns_can_be_selected(run: Run, folder: Path) -> None:
    path = folder / "odd.csv"
    path.write_text(
        "when,what,part\n" + "".join(f"{n},{100 + n % 2},p{n % 2}\n" for n in range(99))
    )
    done = run("--json", "--x", "when", "--metric", "what=MiB", "--phase-column", "part", str(path))
    series = json.loads(done.stdout)["recordings"][0]["series"][0]
    assert (series["metric"], series["axis"]["name"]) == ("what_bytes", "when")
    assert series["latest_value"] == 100 * 2**20


def test_limit_and_plan_reach_the_forecast(run: Run, folder: Path) -> None:
    done = run("--json", "--limit", "60GB", "--planned-steps", "2000", str(folder / "leak.csv"))
    series = json.loads(done.stdout)["recordings"][0]["series"][0]
    assert [f["at_x"] for f in series["forecasts"]] == [2000]
    assert series["limit_hits"][0]["limit_bytes"] == 60_000_000_000


@pytest.mark.parametrize(
    "arguments", [("--metric", "a=furlong"), ("--limit", "much"), ("--limit", "0")]
)
def test_invalid_options_are_usage_errors(
    run: Run, folder: Path, arguments: tuple[str, ...]
) -> None:
    done = run(*arguments, str(folder / "flat.csv"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert "hint:" in done.stderr


@pytest.mark.parametrize("width", [60, 80, 160])
def test_report_keeps_to_its_width_in_plain_ascii(run: Run, folder: Path, width: int) -> None:
    done = run("--width", str(width), "--ascii", str(folder / "leak.csv"))
    assert done.stdout.isascii()
    *lines, last = done.stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert last.endswith(str(folder / "leak.csv"))  # never cut
    assert "\x1b" not in done.stdout


def test_color_is_optional(run: Run, folder: Path) -> None:
    assert "\x1b[" in run("--color", "always", str(folder / "leak.csv")).stdout


def test_hostile_names_do_not_reach_the_terminal(run: Run, folder: Path) -> None:
    path = folder / "evil\x1b[31m\n[bold]x.csv"
    path.write_text('step,"rss\x1b]0;x\x07_mb"\n' + "".join(f"{n},5\n" for n in range(50)))
    broken = folder / "evil\x1b[2J.csv"
    broken.write_text("nothing here")
    done = run(str(path), str(broken))
    assert "\x1b" not in done.stdout + done.stderr
    assert "\x07" not in done.stdout + done.stderr


BURN = Path(__file__).parents[2] / "fixtures" / "runs" / "burn_hybrid.csv"


def test_growth_per_event_is_reported_in_copies_of_the_model(run: Run) -> None:
    done = run("--model-params", "124M", "--width", "200", str(BURN))
    assert "Each Predict and each Correct added 1.44 to 1.47 GB" in " ".join(done.stdout.split())
    assert "2.94 fp32 copies of the model (496 MB each)" in done.stdout
    (found,) = json.loads(run("--json", "--model-params", "0.124B", str(BURN)).stdout)["recordings"]
    (alike,) = [s["recurring"] for s in found["series"] if s["recurring"]]
    assert alike["events"] == 5
    assert (alike["match"]["what"], round(alike["match"]["multiple"], 2)) == ("model", 2.94)


@pytest.mark.parametrize("text", ["", "many", "-5", "0", "1.2.3M"])
def test_invalid_number_of_parameters_is_an_error(run: Run, text: str) -> None:
    done = run(f"--model-params={text}", str(BURN))
    assert done.returncode == 2
    assert "--model-params" in done.stderr


def test_why_prints_the_arguments_of_each_recording(run: Run, folder: Path) -> None:
    names = [str(folder / f"{name}.csv") for name in ("flat", "leak", "short")]
    done = run("--why", *names)
    assert done.returncode == 1
    verdicts = [line.split()[1] for line in done.stdout.split("\n") if line.startswith(" Why ")]
    assert verdicts == ["STABLE:", "LEAK:", "INCONCLUSIVE:"]
    assert " ".join(done.stdout.split()).count("This decides.") == 3
    assert max(map(len, done.stdout.split("\n"))) <= 80


def test_why_obeys_width_and_ascii_and_a_hostile_column(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    rows = "".join(f"{n},{5000 + 30 * n}\n" for n in range(900))
    path.write_text(f"step,\x1b[31mrss\u202e_[bold]mb\n{rows}", encoding="utf-8")
    metric = "rss\u202e_[bold]mb=MB"
    done = run("--why", "--ascii", "--width", "40", "--metric", metric, str(path))
    assert "This decides." in " ".join(done.stdout.split())
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 40


def test_why_and_json_is_json_alone(run: Run, folder: Path) -> None:
    done = run("--why", "--json", str(folder / "leak.csv"))
    (series,) = json.loads(done.stdout)["recordings"][0]["series"]
    assert [argument["check"] for argument in series["trail"] if argument["is_decisive"]]
    assert done.stdout == run("--json", str(folder / "leak.csv")).stdout


def test_what_was_not_read_stands_beside_a_stable_verdict(run: Run, tmp_path: Path) -> None:
    """The size that grows has a name that memdiag does not know."""
    log = tmp_path / "train.log"
    lines = [f"step {n} rss 812 MB, blob pool {100 + 5 * n} MB" for n in range(200)]
    log.write_text("\n".join(lines) + "\n")
    done = run(str(log))
    assert done.returncode == 0
    assert ' unread   "blob pool 100 MB".' in done.stdout
