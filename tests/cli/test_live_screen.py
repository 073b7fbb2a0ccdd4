"""`run --live` and `watch` on a terminal: the screen, and that the job does not notice it."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess

import pytest
from terminals import CONCLUSION, MEMDIAG, Terminal, python
from tmux import Tmux, needs_tmux

pytest.importorskip("textual")

LIVE = [*MEMDIAG, "run", "--live", "--"]
# A job of a hundred steps that grows; it goes on until the file "go" is there.
GROWS = """
import os, time, memdiag
kept = []
step = 0
while step < 100 or not os.path.exists("go"):
    memdiag.step(step)
    kept.append(bytearray(100_000))
    if step % 10 == 0: print(f"step {step} done", flush=True)
    step += 1
    time.sleep(0.02)
print("the end", flush=True)
raise SystemExit(7)
"""
ASKS = """
import getpass, sys
print("is a terminal:", sys.stdout.isatty(), sys.stdin.isatty())
name = input("your name: ")
print("hello", name, len(getpass.getpass("secret: ")))
"""
FULL_SCREEN = """
import curses
def main(screen):
    screen.addstr(0, 0, "FULL SCREEN")
    screen.refresh()
    screen.addstr(1, 0, f"key {screen.getch()}")
    screen.refresh()
    screen.getch()
curses.wrapper(main)
print("left it")
"""


def go(directory):
    (directory / "go").touch()


@needs_tmux
@pytest.mark.parametrize("size", [(60, 20), (80, 24), (200, 60)])
def test_the_screen_and_then_the_whole_output_and_the_report(tmp_path, size):
    with Tmux(tmp_path, size) as terminal:
        terminal.run([*LIVE, *python(GROWS)])
        seen = terminal.until(r"step 1\d0 done")
        assert re.search(r"^ 0:00:\d\d · step \d+ · ", seen, re.M)
        assert "output of " in seen
        assert "q leave" in seen.splitlines()[-1]
        assert "RSS of main" in seen
        go(tmp_path)
        seen = terminal.until(CONCLUSION, scrolled=True)
        terminal.type("echo status $?; stty -a")
        seen = terminal.until(r"^status 7", scrolled=True)
        assert re.search(r"(?<!-)\becho\b.*", terminal.until(r"cchars|lflags|echok"))
    lines = seen.splitlines()
    first = lines.index("step 0 done")
    last = int(re.findall(r"^step (\d+) done", seen, re.M)[-1])
    assert lines[first : lines.index("the end")] == [
        f"step {step} done" for step in range(0, last + 1, 10)
    ]


@needs_tmux
def test_resized_while_it_runs(tmp_path):
    with Tmux(tmp_path) as terminal:
        terminal.run([*LIVE, *python(GROWS)])
        terminal.until(r"^ step \d+ done")
        for columns, rows in ((60, 20), (200, 60), (45, 13), (100, 30)):
            terminal.resize(columns, rows)
            seen = terminal.until(rf"\A(.{{0,{columns}}}\n){{{rows - 1}}} q leave")
            assert len(seen.splitlines()) == rows
        go(tmp_path)
        terminal.until(CONCLUSION)


@needs_tmux
def test_left_by_key_it_goes_on_with_the_status_line(tmp_path):
    with Tmux(tmp_path) as terminal:
        terminal.run([*LIVE, *python(GROWS)])
        terminal.until(r"^ step \d+ done")
        terminal.press("q")
        terminal.until(r"l: leave the screen")
        terminal.press("l")
        terminal.until(r"^memdiag 0:\d\d · step")
        go(tmp_path)
        seen = terminal.until(CONCLUSION, scrolled=True)
        assert "step 0 done" in seen
        terminal.type("echo status $?")
        terminal.until(r"^status 7")


@needs_tmux
def test_ctrl_c_and_ctrl_z_reach_the_job(tmp_path):
    with Tmux(tmp_path) as terminal:
        terminal.run([*LIVE, *python(GROWS)])
        terminal.until(r"^ step \d+ done")
        terminal.press("C-z")
        terminal.until(r"Stopped")
        assert "step 0 done" in terminal.see(scrolled=True)
        terminal.type("fg")
        terminal.until(r"^ 0:0\d:\d\d · step")
        terminal.press("C-c")
        seen = terminal.until(CONCLUSION, scrolled=True)
        assert "KeyboardInterrupt" in seen
        terminal.type("echo status $?")
        terminal.until(r"^status 130")


@needs_tmux
@pytest.mark.parametrize("has_shell", [True, False])
def test_a_job_that_reads_from_the_terminal_gets_it(tmp_path, has_shell):
    """Without a shell, as in `docker run`, the kernel would let the read fail."""
    with Tmux(tmp_path) as terminal:
        terminal.run([*([] if has_shell else ["exec"]), *LIVE, *python(ASKS)])
        terminal.until(r"^your name: *$", scrolled=True)
        terminal.type("Bob")
        terminal.until(r"^secret: *$", scrolled=True)
        terminal.type("12345")
        seen = terminal.until(CONCLUSION, scrolled=True)
    assert "is a terminal: True True" in seen
    assert "hello Bob 5" in seen
    assert "12345" not in seen
    assert "the command uses the terminal" in seen


@needs_tmux
def test_a_full_screen_job_gets_the_terminal_and_its_keys(tmp_path):
    with Tmux(tmp_path) as terminal:
        terminal.run([*LIVE, *python(FULL_SCREEN)])
        terminal.until(r"^FULL SCREEN")
        terminal.press("a")
        terminal.until(r"^key 97")
        terminal.press("b")
        terminal.until(CONCLUSION)
        assert "left it" in terminal.see(scrolled=True)
        terminal.type("stty -a")
        assert re.search(r"(?<!-)\bicanon\b", terminal.until(r"echok"))


def screen_of(memdiag: int) -> int:
    """The process of the screen."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,comm=", "--ppid", str(memdiag)],
        capture_output=True,
        text=True,
        check=True,
    )
    (found,) = re.findall(r"(\d+) memdiag-screen", listed.stdout)
    return int(found)


@needs_tmux
@pytest.mark.parametrize("victim", ["screen", "memdiag"])
def test_after_sigkill_the_terminal_is_in_order_and_the_output_is_there(tmp_path, victim):
    says = f"import os; open('memdiag', 'w').write(str(os.getppid()))\n{GROWS}"
    with Tmux(tmp_path) as terminal:
        terminal.run([*LIVE, *python(says)])
        terminal.until(r"^ step \d+ done")
        memdiag = int((tmp_path / "memdiag").read_text())
        os.kill(screen_of(memdiag) if victim == "screen" else memdiag, signal.SIGKILL)
        seen = terminal.until(r"^step 0 done", scrolled=True)
        if victim == "screen":
            assert "the live screen has failed: its process has ended" in seen
        go(tmp_path)
        terminal.until(r"^the end", scrolled=True)
        if victim == "screen":
            terminal.until(CONCLUSION, scrolled=True)
        terminal.type("stty -a")
        assert re.search(r"(?<!-)\becho\b", terminal.until(r"echok"))


@needs_tmux
def test_a_watch_shows_the_screen_without_being_asked(tmp_path):
    with (
        subprocess.Popen(
            [*MEMDIAG, "run", "--quiet", "--", *python(GROWS)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as job,
        Tmux(tmp_path) as terminal,
    ):
        assert job.stdout is not None
        job.stdout.readline()
        (pid,) = subprocess.run(
            ["pgrep", "-P", str(job.pid), "-x", "python.*"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        terminal.run([*MEMDIAG, "watch", "--pid", pid])
        terminal.until(r"^ main \(\d+\)")
        terminal.press("m")
        terminal.until(r"marked as mark 1")
        terminal.press("q")
        seen = terminal.until(CONCLUSION, scrolled=True)
        assert re.search(r"marked by the user after [\d.]+ s, at step \d+", seen)
        assert job.poll() is None
        go(tmp_path)
        job.communicate()
        assert job.returncode == 7


@needs_tmux
def test_a_watch_stops_by_ctrl_z_and_continues(tmp_path):
    with subprocess.Popen(python("input()"), stdin=subprocess.PIPE) as job, Tmux(tmp_path) as term:
        term.run([*MEMDIAG, "watch", "--pid", str(job.pid)])
        term.until(r"q leave")
        term.press("C-z")
        term.until(r"Stopped")
        term.type("stty -a")
        assert re.search(r"(?<!-)\becho\b", term.until(r"echok"))
        term.type("fg")
        term.until(r"q leave")
        job.communicate(b"\n")
        term.until(CONCLUSION)


@needs_tmux
def test_a_memdiag_that_is_stopped_leaves_the_terminal_to_the_shell(tmp_path):
    says = f"import os; open('memdiag', 'w').write(str(os.getppid()))\n{GROWS}"
    with Tmux(tmp_path) as terminal:
        terminal.run([*LIVE, *python(says)])
        terminal.until(r"^ step \d+ done")
        memdiag = int((tmp_path / "memdiag").read_text())
        os.kill(memdiag, signal.SIGSTOP)
        terminal.until(r"Stopped")
        terminal.type("stty -a")
        terminal.until(r"echok")
        terminal.type("fg")
        terminal.until(r"q leave")
        go(tmp_path)
        terminal.until(r"^the end", scrolled=True)
        terminal.until(CONCLUSION)


@needs_tmux
def test_keys_are_answered_at_once_with_a_long_interval(tmp_path):
    with Tmux(tmp_path) as terminal:
        terminal.run([*LIVE[:-1], "--interval", "1h", "--", *python(GROWS)])
        terminal.until(r"^ step \d+ done")
        terminal.press("q")
        terminal.until(r"l: leave the screen")
        terminal.press("e")
        terminal.until(CONCLUSION, scrolled=True)


@needs_tmux
def test_messages_of_memdiag_are_shown_and_stay(tmp_path):
    with Tmux(tmp_path) as terminal:
        terminal.run([*LIVE[:-1], "--warn-at", "12MB", "--", *python(GROWS)])
        terminal.until(r"above --warn-at|12 MB|12MB")
        go(tmp_path)
        seen = terminal.until(CONCLUSION, scrolled=True)
    assert re.search(r"^memdiag: .*12.0 MB", seen, re.M)


@needs_tmux
def test_output_to_a_file_is_not_touched(tmp_path):
    says = "import os, time; print(os.fstat(1).st_ino); time.sleep(3)"
    with Tmux(tmp_path) as terminal:
        terminal.type(f"{shlex.join([*LIVE, *python(says)])} > out; echo over")
        terminal.until(r"output of ")
        terminal.until(r"^over")
    file = tmp_path / "out"
    assert file.read_text() == f"{file.stat().st_ino}\n"


@needs_tmux
def test_without_color_and_without_unicode(tmp_path):
    plain = {"NO_COLOR": "1", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with Tmux(tmp_path, environ=plain) as terminal:
        terminal.run([*LIVE, *python(GROWS)])
        terminal.until(r"^ step \d+ done")
        seen = terminal.see(colors=True)
        assert seen.isascii()
        assert not re.search(r"\x1b\[[\d;]*\b(3[0-7]|38|4[0-7]|48|9[0-7])\b", seen)
        go(tmp_path)
        terminal.until(CONCLUSION)


@pytest.mark.parametrize(
    ("environ", "size", "why"),
    [
        ({"TERM": "dumb"}, (24, 80), r"the terminal cannot move its cursor \(TERM=dumb\)"),
        ({}, (8, 80), r"the terminal has 80x8 characters, fewer than 40x12"),
    ],
)
def test_a_terminal_that_cannot_show_it_has_the_plain_output(tmp_path, environ, size, why):
    command = [*LIVE, *python("print('hello')")]
    with Terminal(command, directory=tmp_path, environ=environ, size=size) as terminal:
        terminal.until(rf"memdiag: no live screen: {why}")
        terminal.until("hello")
        terminal.finish()
    assert b"\x1b[?1049h" not in terminal.screen


def test_a_pipe_has_the_plain_output(tmp_path):
    done = subprocess.run(
        [*LIVE, *python("print('hello')")],
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "hello\n"
    assert "no live screen: stderr is not a terminal" in done.stderr


def test_live_and_quiet_exclude_each_other(tmp_path):
    done = subprocess.run(
        [*MEMDIAG, "run", "--live", "--quiet", "--", "true"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "--live and --quiet" in done.stderr
