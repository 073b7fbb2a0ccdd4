"""`--on`: what happens when memory reaches a level, in real jobs."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from commandline import called
from terminals import MEMDIAG, PATIENCE_S

from memdiag.cli.measurement import action_process
from memdiag.cli.measurement.action_process import ActionProcess, execute, post
from memdiag.cli.options.actions import (
    Execute,
    Level,
    Note,
    Reaction,
    SendSignal,
    Stop,
    Webhook,
    parse_reaction,
    without_secrets,
)
from memdiag.errors import UsageError
from memdiag.values.measurements import MarkLevel
from memdiag.values.thresholds import parse_threshold

MB = 10**6
SECRET = "T0/B0/s3cr3t"
# Grows to argv[1] MB, waits for a signal or argv[2] seconds, and prints what it got.
PROGRAM = """\
import signal, sys, time
got = []
signal.signal(signal.SIGUSR1, lambda *_: got.append("USR1"))
signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(0)))
held = bytearray(int(sys.argv[1]) * 1000000)
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until and not got:
    time.sleep(0.02)
print(*got)
"""
FACTS = {"level": "critical", "message": "critical: RSS passed <!channel> & more", "pid": 7}


def job(*options: str, directory: Path, grows_mb: int = 60, seconds: float = 30) -> Any:
    program = [sys.executable, "-c", PROGRAM, str(grows_mb), str(seconds)]
    return subprocess.run(
        [*MEMDIAG, "run", "-o", "r.csv", *options, "--", *program],
        cwd=directory,
        text=True,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )


def sidecar(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "r.meta.json").read_text())
    return found


# -- what is refused before the job begins -------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reaction"),
    [
        ("warn=note", Reaction(Level.WARN, Note())),
        ("critical = stop", Reaction(Level.CRITICAL, Stop())),
        ("leak=signal:SIGUSR2", Reaction(Level.LEAK, SendSignal(signal.SIGUSR2))),
        ("leak=signal:usr2", Reaction(Level.LEAK, SendSignal(signal.SIGUSR2))),
        ("leak=signal:10", Reaction(Level.LEAK, SendSignal(signal.SIGUSR1))),
        ("warn=exec:mail -s 'a b' me", Reaction(Level.WARN, Execute(("mail", "-s", "a b", "me")))),
        ("warn=webhook:http://h:1/?a=b", Reaction(Level.WARN, Webhook("http://h:1/?a=b"))),
    ],
)
def test_actions_are_understood(text: str, reaction: Reaction) -> None:
    assert parse_reaction(text, "--on") == reaction


@pytest.mark.parametrize(
    "text",
    [
        *("", "stop", "critical", "critical=", "panic=stop", "warn=stop:now", "warn=note:x"),
        *("warn=signal:", "warn=signal:NOSUCH", "warn=signal:0", "warn=signal:999", "warn=mail:x"),
        *("warn=exec:", "warn=exec:'open", "warn=webhook:", "warn=webhook:ftp://h/x"),
        *("warn=webhook:https://", "warn=webhook:http://h:99999/", "warn=webhook:http://h/a b"),
        *("warn=webhook:http://h/\x1b[2J", "warn=webhook:http://[::1/"),
    ],
)
def test_invalid_action_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_reaction(text, "--on")


@pytest.mark.parametrize("text", ["warn=webhook:ftp://h/KEY", "oops=webhook:https://h/KEY"])
def test_refusal_does_not_show_the_url(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_reaction(text, "--on")
    assert "KEY" not in refused.value.message + refused.value.remedy
    assert "KEY" not in repr(Webhook("https://h/KEY"))


@pytest.mark.parametrize(
    "options",
    [
        ["--on", "warn=stop"],  # without a level
        ["--on", "critical=stop", "--warn-at", "50%"],
        ["--warn-at", "101%"],
        ["--warn-at", "in:0"],
        ["--warn-at", "in:soon"],
        ["--on", "leak=exec:memdiag-has-no-such-command"],
        ["--on", "leak=webhook:http://no-such-host.invalid/"],
    ],
)
def test_job_is_not_started_with_an_action_that_cannot_work(
    tmp_path: Path, options: list[str]
) -> None:
    began = tmp_path / "began"
    done = called("run", "-o", tmp_path / "r.csv", *options, "--", "touch", began)
    assert done.returncode == 2, done.stderr
    assert not began.exists()
    assert "memdiag: " in done.stderr
    assert "Traceback" not in done.stderr


def test_webhook_that_refuses_connections_is_reported_before_the_job(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    url = f"http://127.0.0.1:{port}/{SECRET}"
    done = called("run", "-o", tmp_path / "r.csv", "--on", f"leak=webhook:{url}", "true")
    assert done.returncode == 2
    assert "cannot be reached: Connection refused" in done.stderr
    assert SECRET not in done.stderr


def test_options_of_the_documentation_are_valid() -> None:
    text = (Path(__file__).parents[2] / "docs" / "guard.md").read_text()
    shown = re.findall(r"--on ((?:warn|critical|leak)=[^ `\\\n]+)", text)
    assert len(shown) > 5
    for one in shown:
        parse_reaction(one, "--on")
    for level in re.findall(r"--(?:warn|critical)-at ([^ `,\n)]+)", text):
        parse_threshold(MarkLevel.WARNING, level, given_as="--warn-at")


# -- actions on a job ----------------------------------------------------------------------------


def test_signal_is_sent_to_the_main_process_once(tmp_path: Path) -> None:
    done = job("--warn-at", "30MB", "--on", "warn=signal:USR1", directory=tmp_path)
    assert done.stdout == "USR1\n"
    assert done.returncode in {0, 3}
    (note,) = [note for note in sidecar(tmp_path)["notes"] if note.startswith("warn: SIGUSR1")]
    assert "was sent to process" in note


def test_job_that_stays_below_its_level_is_left_alone(tmp_path: Path) -> None:
    options = ["--warn-at", "95%", "--limit", "1GB", "--on", "warn=stop", "--on", "leak=stop"]
    done = job(*options, directory=tmp_path, seconds=1)
    assert done.stdout == "\n"
    assert done.returncode in {0, 3}
    assert not any(note.startswith("warn") for note in sidecar(tmp_path)["notes"])


def test_stop_ends_the_job_and_the_exit_code_shows_it(tmp_path: Path) -> None:
    done = job("--critical-at", "30MB", "--on", "critical=stop", directory=tmp_path)
    assert done.stdout == "saved\n"
    assert done.returncode == 5
    assert sidecar(tmp_path)["ending"]["why"] == "ended by memdiag because of --on critical=stop"


def test_command_gets_the_facts_and_its_output_is_shown(tmp_path: Path) -> None:
    shown = "exec:sh -c 'echo level $MEMDIAG_EVENT_LEVEL; cat > facts.json; exit 9'"
    options = ["--critical-at", "30MB", "--on", f"critical={shown}", "--on", "critical=stop"]
    done = job(*options, directory=tmp_path)
    assert "level critical\n" in done.stderr
    assert "level" not in done.stdout
    assert "critical: exec:sh: exit status 9" in done.stderr
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert facts["value_bytes"] >= facts["threshold_bytes"] == 30 * MB
    assert (facts["metric"], facts["recording"]) == ("rss_bytes", "r.csv")


def test_words_of_the_command_are_not_seen_by_a_shell(tmp_path: Path) -> None:
    option = "critical=exec:touch '$(touch bad);touch worse'"
    job("--critical-at", "30MB", "--on", option, "--on", "critical=stop", directory=tmp_path)
    assert (tmp_path / "$(touch bad);touch worse").exists()
    assert not (tmp_path / "bad").exists()


def test_command_does_not_count_as_part_of_the_job(tmp_path: Path) -> None:
    big = f'{sys.executable} -c "import time; x = bytearray(300000000); time.sleep(1)"'
    options = ["--critical-at", "30MB", "--on", f"critical=exec:{big}", "--json-file", "r.json"]
    job(*options, directory=tmp_path, seconds=3)
    (found,) = json.loads((tmp_path / "r.json").read_text())["recordings"]
    peak = max(one["peak_value"] for one in found["series"] if one["metric"] == "rss_bytes")
    assert peak < 200 * MB


def test_actions_of_the_configuration_are_used(tmp_path: Path) -> None:
    table = '[tool.memdiag]\ncritical-at = "30MB"\non = { critical = "signal:USR1" }\n'
    (tmp_path / "pyproject.toml").write_text(table)
    assert job(directory=tmp_path).stdout == "USR1\n"


def test_watched_process_gets_signals_and_is_stopped(tmp_path: Path) -> None:
    program = [sys.executable, "-c", PROGRAM, "60", "60"]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    options = ["--critical-at", "30MB", "--on", "critical=stop", "-o", "r.csv"]
    watched = subprocess.run(
        [*MEMDIAG, "watch", "--pid", str(process.pid), *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in {0, -signal.SIGTERM}  # its handler may not be set yet
    assert out in {"", "saved\n"}
    assert watched.returncode == 5, watched.stderr


@pytest.mark.slow
def test_leak_is_answered_once_it_is_confirmed(tmp_path: Path) -> None:
    program = Path(__file__).parents[2] / "fixtures" / "programs" / "leak.py"
    options = ["--on", "leak=exec:touch leaked", "--on", "leak=stop", "--critical-at", "in:1h"]
    done = subprocess.run(
        [
            *(*MEMDIAG, "run", "-o", "r.csv", "--limit", "2GB", *options, "--"),
            *(sys.executable, str(program), "--steps", "100000", "--pace", "0.01"),
        ],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "leaked").exists()
    assert "ending the job (--on leak=stop)" in done.stderr
    (mark,) = sidecar(tmp_path)["marks"]
    assert mark["limit"] == "--limit"
    assert 0 < mark["left_s"] < 3600


# -- the process that performs them --------------------------------------------------------------


def performed(*actions: Execute | Webhook) -> list[str]:
    process = ActionProcess(actions, signal_mask=())
    for action in actions:
        assert process.start(action, FACTS)
    return sorted(process.finish())


def test_command_that_takes_too_long_is_killed_with_its_children(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(action_process, "COMMAND_S", 0.5)
    pid = tmp_path / "pid"
    words = ("sh", "-c", f"sleep 60 & echo $! > {pid}; wait")
    assert performed(Execute(words)) == [
        "critical: exec:sh: killed: it took more than 0.5 s",
    ]
    child = int(pid.read_text())
    until_s = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{child}/cmdline").exists() and time.monotonic() < until_s:
        if not Path(f"/proc/{child}/cmdline").read_bytes():
            return  # a zombie
        time.sleep(0.01)
    assert not Path(f"/proc/{child}").exists()


def test_commands_run_beside_each_other() -> None:
    slow = Execute(("sh", "-c", "kill -TERM $$"))
    assert performed(slow, Execute(("true",))) == [
        "critical: exec:sh: ended by signal 15",
        "critical: exec:true: exit status 0",
    ]


def test_program_that_is_gone_by_then_is_noted() -> None:
    result = execute("/no/such/program", ("program",), FACTS, ())
    assert result == "could not be started: No such file or directory"


# -- webhooks ------------------------------------------------------------------------------------

Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def server(answer: Answer) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook on loopback; yields its URL and the documents that it got."""
    got: list[dict[str, Any]] = []
    may_end = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        ended = may_end

        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            got.append({"path": self.path, **json.loads(self.rfile.read(size))})
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    httpd.block_on_close = False
    httpd.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}/{SECRET}", got
    finally:
        may_end.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def status(code: int, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()

    return answer


def closed(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def slow(handler: BaseHTTPRequestHandler) -> None:
    handler.ended.wait(PATIENCE_S)  # type: ignore[attr-defined]


def huge(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    piece = b"x" * (1 << 20)
    while not handler.ended.is_set():  # type: ignore[attr-defined]
        handler.wfile.write(piece)


def endless_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.0 200 OK\r\n")
    while not handler.ended.is_set():  # type: ignore[attr-defined]
        handler.wfile.write(b"x: y\r\n" * 1000)


def test_webhook_gets_the_facts_and_a_text_that_cannot_address_a_channel() -> None:
    with server(status(200)) as (url, got):
        assert post(url, FACTS) == "delivered"
    (document,) = got
    assert document["path"] == f"/{SECRET}"
    assert document["memdiag"] == FACTS
    assert document["text"] == "memdiag: critical: RSS passed &lt;!channel&gt; &amp; more"


@pytest.mark.parametrize(
    ("answer", "attempts", "result"),
    [
        (status(204), 1, "delivered"),
        (status(500), 2, "not delivered, after a second attempt: HTTP status 500"),
        (
            status(302, Location="http://127.0.0.1:1/elsewhere"),
            2,
            "not delivered, after a second attempt: HTTP status 302",
        ),
        (closed, 2, "not delivered, after a second attempt: RemoteDisconnected"),
        (huge, 1, "delivered"),
        (endless_headers, 2, "not delivered, after a second attempt: HTTPException"),
    ],
)
def test_webhook_with_a_fault_is_tried_twice(answer: Answer, attempts: int, result: str) -> None:
    with server(answer) as (url, got):
        assert post(url, FACTS, pause=lambda _: None) == result
    assert len(got) == attempts


def test_webhook_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action_process, "_TRY_S", 0.3)
    with server(slow) as (url, got):
        said = post(url, FACTS, pause=lambda _: None)
    assert said.startswith("not delivered, after a second attempt: ")
    assert len(got) == 2


def test_url_of_a_webhook_is_in_no_output(tmp_path: Path) -> None:
    with server(status(500)) as (url, got):
        options = ["--critical-at", "30MB", "--on", f"critical=webhook:{url}"]
        options += ["--json-file", "r.json", "--markdown", "r.md", "--on", "critical=stop"]
        done = job(*options, directory=tmp_path)
    assert len(got) == 2
    assert "critical: webhook: not delivered" in done.stderr
    assert SECRET not in done.stdout + done.stderr
    written = [path for path in tmp_path.iterdir() if path.is_file()]
    assert len(written) >= 4
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]


def test_slow_webhook_does_not_delay_samples(tmp_path: Path) -> None:
    with server(slow) as (url, got):
        options = ["--critical-at", "30MB", "--on", f"critical=webhook:{url}"]
        process = subprocess.Popen(
            [
                *(*MEMDIAG, "run", "-o", "r.csv", *options, "--"),
                *(sys.executable, "-c", PROGRAM, "60", "3"),
            ],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        until_s = time.monotonic() + PATIENCE_S
        while not got and time.monotonic() < until_s:
            time.sleep(0.01)
        while process.poll() is None and not _has_ended(tmp_path) and time.monotonic() < until_s:
            time.sleep(0.01)
    _, err = process.communicate(timeout=PATIENCE_S)
    cost = sidecar(tmp_path)["cost"]
    assert cost["ticks"] >= 15, err


def _has_ended(directory: Path) -> bool:
    """Return True if the recording has samples of three seconds."""
    recorded = directory / "r.csv"
    return recorded.exists() and len(recorded.read_text().splitlines()) > 20


def test_secrets_are_replaced_in_arguments() -> None:
    reactions = [Reaction(Level.LEAK, Webhook("https://h/KEY"))]
    shown = without_secrets(["--on", "leak=webhook:https://h/KEY", "-q"], reactions)
    assert shown == ["--on", "leak=webhook:...", "-q"]


def test_command_of_an_action_does_not_inherit_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMDIAG_ON", f"leak=webhook:https://h/{SECRET}")
    words = ("sh", "-c", 'test -z "$MEMDIAG_ON" && test "$MEMDIAG_EVENT_LEVEL" = critical')
    assert execute("/bin/sh", words, FACTS, ()) == "exit status 0"
    assert os.environ["MEMDIAG_ON"]
