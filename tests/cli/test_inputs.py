"""The bar that shows how far a pipe or a packed file was read."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from terminals import Terminal, python

from memdiag.cli.options import inputs
from memdiag.cli.options.inputs import InputOptions
from memdiag.recording.read_options import DEFAULT_MAX_INPUT_BYTES

ROWS = b"".join(b"%d,5000\n" % n for n in range(20_000))
# Without the second that the reading of so little never takes.
_AT_ONCE = """
import sys
from memdiag.cli.options import inputs
from memdiag.cli.app import main
inputs._SHOWN_AFTER_S = 0.0
sys.argv = ["memdiag", "analyze", *{arguments!r}]
code = main()
print("loaded", "rich.progress" in sys.modules)
sys.exit(code)
"""


def at_once(*arguments: str) -> list[str]:
    return python(_AT_ONCE.format(arguments=arguments))


def test_default_of_max_input_is_that_of_the_reader() -> None:
    (option,) = (f for f in fields(InputOptions) if f.name == "max_input_bytes")
    assert inputs.max_bytes(option.default) == DEFAULT_MAX_INPUT_BYTES


def test_a_bar_shows_how_far_a_pipe_was_read_and_is_gone_at_the_end(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with Terminal(at_once("pipe"), directory=tmp_path) as terminal:
        with fifo.open("wb") as file:
            file.write(b"step,rss_mb\n" + ROWS)
            file.flush()
            terminal.until("reading pipe.*kB")
        terminal.until("STABLE")
        assert terminal.finish() == 0
    report = terminal.screen[terminal.screen.index(b"STABLE") :]
    assert b"reading " not in report
    assert b"\x1b[?25l" not in terminal.screen  # the cursor was never hidden


def test_a_bar_shows_the_part_of_a_packed_file(tmp_path: Path) -> None:
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"step,rss_mb\n" + ROWS))
    size_kb = path.stat().st_size / 1000
    with Terminal(at_once("log.csv.gz"), directory=tmp_path) as terminal:
        terminal.until(rf"reading log\.csv\.gz.*/{size_kb:.1f} kB")
        assert terminal.finish() == 0


def test_ctrl_c_takes_the_bar_away(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with Terminal(at_once("pipe"), directory=tmp_path) as terminal, fifo.open("wb") as file:
        file.write(b"step,rss_mb\n" + ROWS)
        file.flush()
        terminal.until("reading pipe")
        terminal.type("\x03")
        assert terminal.finish() == 130
    assert terminal.screen.endswith(b"\x1b[2Kloaded True\r\n")


@pytest.mark.parametrize("way", ["a pipe", "a plain file", "too soon"])
def test_there_is_no_bar_where_none_is_wanted(tmp_path: Path, way: str) -> None:
    """Into a pipe, for a file that is read in place, or for what takes less than a second."""
    plain, packed = tmp_path / "log.csv", tmp_path / "log.csv.gz"
    plain.write_bytes(b"step,rss_mb\n" + ROWS)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    if way == "a pipe":
        done = subprocess.run(at_once(str(packed)), capture_output=True, check=True)
        assert done.stderr == b""
        assert b"loaded False" in done.stdout
        return
    command = at_once(str(plain))
    if way == "too soon":
        command = [*command[:-1], command[-1].replace("_SHOWN_AFTER_S = 0", "_SHOWN_AFTER_S = 1")]
        command[-1] = command[-1].replace(str(plain), str(packed))
    with Terminal(command, directory=tmp_path) as terminal:
        assert terminal.finish() == 0
    assert b"reading " not in terminal.screen
    assert b"loaded False" in terminal.screen


def test_no_bar_is_drawn_over_what_is_typed(tmp_path: Path) -> None:
    with Terminal(at_once("-"), directory=tmp_path) as terminal:
        terminal.type("step,rss_mb\n" + "".join(f"{n},5000\n" for n in range(60)) + "\x04")
        assert terminal.finish() == 0
    assert b"reading " not in terminal.screen


@pytest.mark.skipif(sys.platform != "linux", reason="one list of modules is enough")
def test_a_plain_file_loads_nothing_of_what_pipes_need(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(b"step,rss_mb\n" + ROWS[:500])
    code = (
        "import sys; from memdiag.cli.app import main; sys.argv = ['m', 'analyze', sys.argv[1]];"
        "main(); print([n for n in ('rich.progress', 'gzip', 'codecs') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(log)], capture_output=True, check=True)
    assert done.stdout.endswith(b"['codecs']\n")
