"""The application around the commands: every ending has its own exit code and message."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from pathlib import Path

import commandline
import pytest

import memdiag

COMMANDS = (
    *("run", "watch", "analyze", "compare", "list", "report", "clean", "doctor"),
    *("census", "history", "config", "demo"),
)
# A command of the test's own, in the real application.
FRAME = """
import sys
from memdiag import errors
from memdiag.cli.app import app, main

@app.command("act")
def act() -> None:
    {body}

sys.argv = ["memdiag", "act"]
sys.exit(main())
"""


def memdiag_cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memdiag", *arguments], capture_output=True, text=True, check=False
    )


def ended_with(body: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", FRAME.format(body=body)],
        capture_output=True,
        text=True,
        check=False,
    )


def in_shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False
    )


def test_version_is_printed_on_stdout() -> None:
    ended = memdiag_cli("--version")
    assert (ended.stdout, ended.returncode) == (f"memdiag {memdiag.__version__}\n", 0)


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_shows_examples_and_exit_codes(arguments: tuple[str, ...]) -> None:
    ended = memdiag_cli(*arguments)
    assert "\n    memdiag run -- python train.py " in ended.stdout
    assert "\n    0 no leak   1 leak   2 usage or unreadable input   3 inconclusive" in ended.stdout
    assert (ended.stderr, ended.returncode) == ("", 0)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_listed_and_has_its_help(command: str) -> None:
    assert f"\n  {command} " in memdiag_cli("--help").stdout
    ended = memdiag_cli(command, "--help")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"Usage: memdiag {command} [OPTIONS]")


@pytest.mark.parametrize(
    ("typed", "offered"), [("memdiag ana", "analyze"), ("memdiag run --js", "--json-file")]
)
def test_completion_offers_commands_and_their_options(typed: str, offered: str) -> None:
    ended = in_shell(
        f'COMP_WORDS="{typed}" COMP_CWORD={typed.count(" ")} _MEMDIAG_COMPLETE=complete_bash'
        ' "$0" -m memdiag'
    )
    assert ended.stdout.split() == [offered]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_fits_on_a_screen(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """80x24, with a line for the prompt."""
    monkeypatch.setenv("COLUMNS", "80")
    assert memdiag_cli(command, "--help").stdout.count("\n") < 24


def test_help_is_the_same_however_memdiag_is_started() -> None:
    script = subprocess.run(
        [Path(sys.executable).with_name("memdiag"), "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert script.stdout == memdiag_cli("--help").stdout


@pytest.mark.parametrize("arguments", [("nosuch",), ("--nosuch",)])
def test_wrong_usage_is_2(arguments: tuple[str, ...]) -> None:
    ended = memdiag_cli(*arguments)
    assert ended.returncode == 2
    assert "nosuch" in ended.stderr
    assert ended.stdout == ""


def test_an_expected_error_shows_what_and_what_to_try_and_no_traceback() -> None:
    ended = ended_with("raise errors.UsageError('two of a kind', remedy='take one')")
    assert ended.returncode == 2
    assert ended.stderr == "memdiag: error: two of a kind\n  hint: take one\n"


def test_an_error_owns_its_exit_code() -> None:
    assert ended_with("raise errors.CannotMeasure('no')").returncode == 4
    assert ended_with("raise errors.CannotStart('no')").returncode == 127
    assert ended_with("raise errors.CannotStart('no', found=True)").returncode == 126


def test_text_of_an_error_cannot_control_the_terminal() -> None:
    ended = ended_with("raise errors.UsageError('a\\x1b[2Jb\\nc', remedy='\\x1b]0;d\\x07')")
    assert "\x1b" not in ended.stderr
    assert "\x07" not in ended.stderr
    assert len(ended.stderr.splitlines()) == 2


@pytest.mark.parametrize("mistake", ["1 / 0", "raise EOFError", "raise OSError(2, 'gone')"])
def test_a_bug_keeps_its_traceback_and_never_looks_like_a_leak(mistake: str) -> None:
    ended = ended_with(mistake)
    assert ended.returncode == 4
    assert "Traceback" in ended.stderr
    assert "bug in memdiag" in ended.stderr


def test_ctrl_c_is_130() -> None:
    assert ended_with("raise KeyboardInterrupt").returncode == 130


def test_a_commands_own_exit_code_is_kept() -> None:
    assert ended_with("import typer; raise typer.Exit(77)").returncode == 77
    assert ended_with("pass").returncode == 0


def test_closed_pipe_ends_with_the_status_of_sigpipe() -> None:
    body = "import os; os.close(0); [print('x' * 1000) for _ in range(1000)]"
    writer = subprocess.Popen(
        [sys.executable, "-c", FRAME.format(body=body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    with writer:
        writer.stdout.close()
        complaint = writer.stderr.read()
    assert (complaint, writer.returncode) == (b"", 128 + signal.SIGPIPE)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_full_disk_under_stdout_is_reported_without_a_traceback() -> None:
    ended = in_shell('"$0" -m memdiag --version > /dev/full')
    assert ended.returncode == 4
    assert ended.stderr == "memdiag: error: could not write: No space left on device\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_survived(closed: str) -> None:
    ended = in_shell(f'"$0" -m memdiag --help {closed}')
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr


def test_garbage_collector_of_the_caller_is_restored() -> None:
    threshold, frozen = gc.get_threshold(), gc.get_freeze_count()
    commandline.called("--version")
    assert gc.get_threshold() == threshold
    assert gc.get_freeze_count() <= frozen  # (what `conftest` has frozen may be freed)
