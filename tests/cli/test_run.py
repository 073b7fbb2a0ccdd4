"""`memdiag run`: transparency, exit codes, and orderly ends of disorderly targets."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import CONCLUSION, MEMDIAG, PATIENCE_S, Terminal, python, recordings

_TRANSPARENT = """
import os, sys
print("out", os.isatty(0), os.isatty(1), os.isatty(2), sys.argv[1:])
print("err", file=sys.stderr)
for line in sys.stdin:
    print("read", line.rstrip(), flush=True)
sys.stdout.buffer.write(bytes(range(256)))
sys.stdout.flush()
print("last", file=sys.stderr)
"""
_BOUNDARY = "\n── memdiag ".encode()  # where the report begins


def run(directory: Path, *arguments: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MEMDIAG, "run", *arguments],
        cwd=directory,
        text=True,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        **({"stdin": subprocess.DEVNULL} if "input" not in more else {}),
        **more,
    )


def rows(path: Path) -> list[dict[str, str]]:
    header, *lines = path.read_text().splitlines()
    return [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]


def test_piped_streams_are_those_of_the_target_byte_for_byte(tmp_path):
    command = [*python(_TRANSPARENT), "a b", "-x", "--", "--quiet"]
    plain = subprocess.run(command, input=b"one\ntwo\n", capture_output=True, check=True)
    watched = subprocess.run(
        [*MEMDIAG, "run", "--", *command],
        input=b"one\ntwo\n",
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    assert watched.stdout == plain.stdout
    assert watched.stderr.startswith(plain.stderr + _BOUNDARY)
    assert b"\x1b" not in watched.stderr


def test_on_a_terminal_the_target_has_the_terminal(tmp_path):
    def screen(*before: str) -> bytes:
        command = [*before, *python(_TRANSPARENT.replace("bytes(range(256))", "b'x'"))]
        with Terminal(command, directory=tmp_path) as terminal:
            terminal.until("err\r\n")
            terminal.type("one\n\x04")
            terminal.finish()
            return terminal.screen

    assert screen(*MEMDIAG, "run", "--quiet", "--").startswith(screen())


def test_target_inherits_only_the_callers_descriptors_and_directory(tmp_path):
    program = (
        "import os; print(os.getcwd(), os.getpgrp() == os.getpgid(os.getppid()));"
        "print([f for f in range(1000) if os.path.exists(f'/proc/self/fd/{f}')])"
    )
    read_end, write_end = os.pipe()
    try:
        done = run(tmp_path, "-q", "--", *python(program), pass_fds=(read_end,))
    finally:
        os.close(read_end)
        os.close(write_end)
    assert done.stdout == f"{tmp_path} True\n[0, 1, 2, {read_end}]\n"


@pytest.mark.parametrize("dashes", [[], ["--"]])
def test_what_follows_the_command_belongs_to_it(tmp_path, dashes):
    show = "import sys; print(sys.argv[1:])"
    done = run(tmp_path, "-q", *dashes, *python(show), "--interval", "x", "-o", "--help")
    assert done.stdout == "['--interval', 'x', '-o', '--help']\n"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -9 $$"], 137),
        (["sh", "-c", "kill -SEGV $$"], 139),
        (["/no/such/program"], 127),
        (["no-such-program"], 127),
        (["/tmp"], 126),
        (["./not-executable"], 126),
        (["./bad-interpreter"], 126),
    ],
)
def test_the_commands_own_failure_decides(tmp_path, command, status):
    (tmp_path / "not-executable").write_text("#!/bin/sh\n")
    (tmp_path / "bad-interpreter").write_text("#!/no/such/interpreter\n")
    (tmp_path / "bad-interpreter").chmod(0o755)
    done = run(tmp_path, "-q", "--", *command)
    assert done.returncode == status
    if status in (126, 127):
        assert done.stderr.startswith("memdiag: error: ")
        assert recordings(tmp_path) == []
    else:
        assert re.search(CONCLUSION, done.stderr)


def test_a_script_without_an_interpreter_is_run_by_sh_as_a_shell_does(tmp_path):
    (tmp_path / "script").write_text('echo "$@"\n')
    (tmp_path / "script").chmod(0o755)
    assert run(tmp_path, "-q", "./script", "a", "b").stdout == "a b\n"


def test_target_that_dies_at_once_is_inconclusive(tmp_path):
    done = run(tmp_path, "--", "true")
    assert done.returncode == 3
    assert "INCONCLUSIVE" in done.stderr
    assert run(tmp_path, "--inconclusive", "pass", "--", "true").returncode == 0


def test_a_command_that_fails_at_once_gets_no_advice_on_memory(tmp_path):
    ended = run(tmp_path, "--", sys.executable, "no_such_file.py")
    assert "next     Look at what the command has printed: it failed at once.\n" in ended.stderr
    assert not {"grow", "longer", "┤"} & set(re.findall(r"\w+|┤", ended.stderr))


@pytest.mark.parametrize(
    ("arguments", "warning", "hint"),
    [
        (
            ("-q", "--", "true", "--max-peak", "16GB", "--fail-on=leak"),
            "--max-peak and --fail-on went to true, not to memdiag",
            "options of memdiag come before the command: memdiag run --max-peak ... -- true",
        ),
        (
            ("-q", "--max-peak", "vramm=2GB", "--", "true", "--limit", "3"),
            "unknown metric 'vramm'",
            "did you mean 'vram'?",
        ),
    ],
)
def test_probable_mistakes_are_warned_of(tmp_path, arguments, warning, hint):
    ended = run(tmp_path, *arguments)
    assert ended.stderr.startswith(f"memdiag: warning: {warning}\n  hint: {hint}\n")
    assert ended.stderr.count("warning") == 1


@pytest.mark.parametrize("output", ["r.csv", "r.parquet"])
def test_existing_file_of_the_recording_is_reported_before_the_start(tmp_path, output):
    (tmp_path / "r.meta.json").write_text("{}")
    done = run(tmp_path, "-o", output, "--", "touch", "ran")
    assert done.returncode == 2
    assert "r.meta.json already exists" in done.stderr
    assert not (tmp_path / "ran").exists()
    assert run(tmp_path, "--force", "-o", output, "--", "touch", "ran").returncode in (0, 3)
    assert (tmp_path / output).exists()


def test_two_hundred_children_are_recorded_and_give_no_series_of_their_own(tmp_path):
    program = """
import os, time
for wave in range(10):
    children = []
    for _ in range(20):
        pid = os.fork()
        if not pid:
            time.sleep(0.2); os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
"""
    options = ["-q", "-o", "r.csv", "--interval", "0.02", "--json-file", "r.json"]
    done = run(tmp_path, *options, "--", *python(program))
    assert done.returncode in (0, 3), done.stderr
    found = rows(tmp_path / "r.csv")
    labels = {row["process"] for row in found}
    assert {"main", "tree"} <= labels
    assert len(labels) > 60  # a loaded machine may let some waves pass unseen
    assert max(int(row["processes"] or 0) for row in found) > 10
    [recording] = json.loads((tmp_path / "r.json").read_text())["recordings"]
    judged = {series["process"] for series in recording["series"]}
    assert len(judged) < 100  # and others grow old


def test_grandchildren_are_watched_and_a_daemon_stays_in_the_tree(tmp_path):
    program = """
import os, sys, time
read_end, write_end = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    hoard = bytearray(60_000_000)
    os.write(write_end, str(os.getpid()).encode())
    time.sleep(60)
daemon = int(os.read(read_end, 20))
os.wait()
rows = lambda: [row.split(",") for row in open("r.csv") if row.count(",") > 7]
while not any(row[3] == str(daemon) and int(row[5] or 0) > 60_000_000 for row in rows()[1:]):
    time.sleep(0.05)
os.kill(daemon, 9)
print(daemon)
"""
    done = run(tmp_path, "-q", "-o", "r.csv", "--", *python(program))
    daemon = done.stdout.strip()
    own = [row for row in rows(tmp_path / "r.csv") if row["pid"] == daemon]
    assert max(int(row["rss_bytes"] or 0) for row in own) > 60_000_000


def test_the_run_ends_with_the_command_though_a_daemon_lives_on(tmp_path):
    program = """
import os, time
pid = os.fork()
if pid == 0:
    os.close(1); os.close(2); os.setsid(); time.sleep(60)
time.sleep(0.3)
print(pid)
os._exit(9)
"""
    done = run(tmp_path, "-q", "--", *python(program))
    pid = int(done.stdout)
    os.kill(pid, signal.SIGKILL)
    assert done.returncode == 9
    assert f"still running and no longer watched (pid {pid})" in done.stderr


def test_duration_ends_the_command_and_the_verdict_decides(tmp_path):
    done = run(tmp_path, "--duration", "0.6", "-o", "r.csv", "--", "sleep", "60")
    assert done.returncode in (0, 3)
    about = json.loads((tmp_path / "r.meta.json").read_text())
    assert "--duration 0.6 s" in about["ending"]["why"]
    assert about["ending"]["signal"] == signal.SIGTERM


def test_sidecar_contains_the_command_and_the_cost_of_memdiag(tmp_path):
    run(tmp_path, "-o", "r.csv", "--", "sleep", "0.5")
    about = json.loads((tmp_path / "r.meta.json").read_text())
    assert about["about"]["command"] == ["sleep", "0.5"]
    assert about["cost"]["ticks"] >= 4
    assert 0 < about["cost"]["cpu_s"] < 0.5
    assert about["cost"]["missed_ticks"] >= 0
    assert about["ending"]["code"] == 0


def test_an_output_is_not_overwritten_and_nothing_is_started(tmp_path):
    (tmp_path / "r.csv").write_text("precious")
    done = run(tmp_path, "-o", "r.csv", "--", "touch", "started")
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert (tmp_path / "r.csv").read_text() == "precious"
    assert not (tmp_path / "started").exists()
    assert run(tmp_path, "-o", "r.csv", "--force", "--", "touch", "started").returncode == 3
    assert (tmp_path / "started").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--interval", "0"],
        ["--interval", "soon"],
        ["--duration", "-1"],
        ["--limit", "lots"],
        ["-o", "no/such/directory/r.csv"],
        ["--stop-on", "warmup"],
        [],
    ],
)
def test_command_is_not_started_with_invalid_options(tmp_path, arguments):
    command = ["--", "touch", "started"] if arguments else []
    done = run(tmp_path, *arguments, *command)
    assert done.returncode == 2
    assert done.stderr
    assert not (tmp_path / "started").exists()


def test_json_goes_to_its_file_and_agrees_with_the_exit_code(tmp_path):
    done = run(tmp_path, "--json-file", "r.json", "--", "sleep", "0.3")
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["exit_code"] == done.returncode
    assert document["verdict"] in ("stable", "warmup", "inconclusive")
    assert done.stdout == ""


def test_a_full_disk_ends_the_recording_and_not_the_command(tmp_path):
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

    show = python("import time; time.sleep(1); print('fine')")
    done = run(tmp_path, "-q", "--", *show, preexec_fn=no_room)
    assert done.stdout == "fine\n"
    assert "measuring failed" in done.stderr
    assert done.returncode == 4
    failing = run(tmp_path, "-q", "--", "sh", "-c", "sleep 1; exit 7", preexec_fn=no_room)
    assert failing.returncode == 7


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_recording_goes_elsewhere_if_this_directory_is_not_writable(tmp_path):
    tmp_path.chmod(0o555)
    done = run(tmp_path, "-q", "--", "sleep", "0.2")
    assert "this directory is not writable; recording to" in done.stderr


def test_steps_phases_and_counters_reach_the_recording(tmp_path):
    program = """
import memdiag, time
for n in range(20):
    with memdiag.phase("train"):
        time.sleep(0.02)
    memdiag.counter("copies", n * 2)
    memdiag.step(n)
"""
    run(tmp_path, "-q", "-o", "r.csv", "--", *python(program))
    found = rows(tmp_path / "r.csv")
    assert {row["step"] for row in found} >= {str(n) for n in range(20)}
    assert "train" in {row["phase"] for row in found}
    assert max(float(row["copies"]) for row in found if row["copies"]) == 38


def test_memdiag_need_not_be_installed_where_the_target_runs(tmp_path):
    program = "import sys; print('memdiag' in sys.modules, '_memdiag_probe' in sys.modules)"
    done = run(tmp_path, "-q", "--", sys.executable, "-c", program)
    assert done.stdout == "False True\n"


def test_stop_on_leak_ends_a_leaking_command_with_code_1(tmp_path):
    program = """
import memdiag, time
kept = []
for n in range(100_000):
    kept.append(b"x" * 300_000)
    memdiag.step(n)
    time.sleep(0.004)
"""
    done = run(tmp_path, "-q", "-o", "r.csv", "--stop-on", "leak", "--", *python(program))
    assert done.returncode == 1, done.stderr
    assert "LEAK" in done.stderr
    about = json.loads((tmp_path / "r.meta.json").read_text())
    assert "--stop-on leak" in about["ending"]["why"]


def test_what_the_probe_cannot_measure_is_missing_with_a_reason(tmp_path):
    until = (
        "import os, time\n"
        "while not os.path.exists({0!r}) or open({0!r}).read().count('main') < 6: time.sleep(0.02)"
    )
    note = "import sys; sys.modules['_memdiag_probe'].listener.step('x')\n"
    noted = run(tmp_path, "-v", "-o", "n.csv", "--", *python(note + until.format("n.csv")))
    assert "step('x') was ignored: not an integer" in " ".join(noted.stderr.split())
    shut = [sys.executable, "-I", "-c", until.format("r.csv")]
    isolated = run(tmp_path, "-v", "-o", "r.csv", "--", *shut)
    said = " ".join(isolated.stderr.split())
    assert "Missing: steps, tensors and memory in use of main: Python was started with -I" in said
    (missing,) = [
        entry
        for entry in json.loads((tmp_path / "r.meta.json").read_text())["missing"]
        if entry["metric"] == "probe_readings"
    ]
    assert missing["process"] == "main"
    assert "start it without -I" in missing["why"]["remedy"]
