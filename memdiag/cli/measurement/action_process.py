"""A process of memdiag that runs commands and calls webhooks: sampling never waits for them.

Its children are not in the tree of the target, and a library that fails in it does not end memdiag.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from memdiag.capture.launch.fork_helper import forked
from memdiag.capture.launch.target import adopt_orphans
from memdiag.cli.options.actions import Execute, Webhook, program_of
from memdiag.cli.output.messages import STDERR, say
from memdiag.values.sanitize import printable

# How long a command may take, and a webhook with its retry. Heuristic.
COMMAND_S, WEBHOOK_S = 60.0, 20.0
_TRY_S, _PAUSE_S = 8.0, 1.0
_LOOK_S = 0.02
_VARIABLE = "MEMDIAG_EVENT_"
# It may hold the URL of a webhook.
_OPTION_VARIABLE = "MEMDIAG_ON"
# A pipe takes this much without a reader (pipe(7)); facts are a few hundred bytes.
_PIPE_BYTES = 65536

Facts = Mapping[str, Any]


class ActionProcess:
    """The process. Create it before there is any thread; raises OSError if it cannot be forked."""

    def __init__(
        self, actions: Sequence[Execute | Webhook], *, signal_mask: Collection[int]
    ) -> None:
        """actions: those that `start` may be called with. signal_mask: for the commands."""
        self._actions = tuple(actions)
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        work = _Work(self._actions, answers, signal_mask, os.getcwd())  # noqa: PTH109
        self.pid = forked(
            lambda: work.run(requests),
            keeps={requests, answers, STDERR},
            name="memdiag-actions",
        )
        os.close(requests)
        os.close(answers)
        os.set_blocking(self._requests, False)
        self._is_finished = False

    @property
    def pids(self) -> frozenset[int]:
        """Its pid."""
        return frozenset({self.pid})

    def start(self, action: Execute | Webhook, facts: Facts) -> bool:
        """Start an action and do not wait for it. Returns False if the process has ended."""
        request = {"action": self._actions.index(action), "facts": dict(facts)}
        try:
            os.write(self._requests, json.dumps(request).encode("ascii") + b"\n")
        except OSError:
            return False
        return True

    def finish(self) -> list[str]:
        """Wait for the actions to end, unless Ctrl-C is pressed; returns what became of them.

        Called again, it returns nothing.
        """
        if self._is_finished:
            return []
        self._is_finished = True
        os.close(self._requests)
        said = _read_all(self._answers, COMMAND_S + WEBHOOK_S)
        os.close(self._answers)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # it was collected with the target's processes
            os.waitpid(self.pid, 0)
        return said.decode(errors="replace").splitlines()


def _read_all(descriptor: int, patience_s: float) -> bytes:
    read = b""
    until_s = time.monotonic() + patience_s
    while time.monotonic() < until_s and signal.SIGINT not in signal.sigpending():
        if select.select([descriptor], [], [], 0.1)[0]:
            piece = os.read(descriptor, _PIPE_BYTES)
            if not piece:
                break
            read += piece
    return read


class _Work:
    """What runs in the process."""

    def __init__(
        self,
        actions: Sequence[Execute | Webhook],
        answers: int,
        signal_mask: Collection[int],
        directory: str,
    ) -> None:
        self._actions = actions
        self._answers = answers
        self._mask = signal_mask
        self._directory = directory
        # Found now: what the program was checked for is what runs.
        self._programs = [
            program_of(action) if isinstance(action, Execute) else None for action in actions
        ]

    def run(self, requests: int) -> None:
        """Perform what is requested, until memdiag has closed the pipe and all has ended."""
        adopt_orphans()  # else what a command leaves behind would be in the tree of the target
        for closed in (0, 1):  # else a pipe would get this number
            os.dup2(os.open(os.devnull, os.O_RDWR), closed)
        with contextlib.suppress(OSError):
            os.chdir(self._directory)
        if any(isinstance(action, Webhook) for action in self._actions):
            import ssl  # noqa: F401 - now, while there is memory
            import urllib.request  # noqa: F401
        os.set_blocking(self._answers, False)
        threads = []
        with os.fdopen(requests, "rb") as lines:
            for line in lines:
                request = json.loads(line)
                thread = threading.Thread(
                    target=self._perform, args=(request["action"], request["facts"])
                )
                thread.start()
                threads.append(thread)
        for thread in threads:
            thread.join()

    def _perform(self, number: int, facts: Facts) -> None:
        action = self._actions[number]
        try:
            if isinstance(action, Webhook):
                what, result = "webhook", post(action.url, facts)
            else:
                program = self._programs[number] or action.words[0]
                what = f"exec:{printable(action.words[0])}"
                result = execute(program, action.words, facts, self._mask)
        except Exception as error:  # whatever it is, the other actions continue
            what, result = "action", type(error).__name__
        text = f"{facts.get('level')}: {what}: {result}"
        with contextlib.suppress(OSError):
            os.write(self._answers, f"{text}\n".encode())
        with contextlib.suppress(OSError):
            say(text)


def execute(program: str, words: Sequence[str], facts: Facts, mask: Collection[int]) -> str:
    """Run a command with the facts, in a session of its own; returns how it ended.

    What it prints goes to stderr. It is killed with its process group once its time is over.
    """
    environ = {name: value for name, value in os.environ.items() if name != _OPTION_VARIABLE}
    for name, value in facts.items():
        environ[_VARIABLE + name.upper()] = "" if value is None else str(value)
    document, write = os.pipe()
    try:
        os.set_blocking(write, False)
        os.write(write, json.dumps(facts).encode("ascii")[:_PIPE_BYTES])
        os.close(write)
        child = os.posix_spawn(
            program,
            list(words),
            {name: value.replace("\0", "") for name, value in environ.items()},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, document, 0),
                (os.POSIX_SPAWN_DUP2, STDERR, 1),
            ],
            setsid=True,
            setsigmask=mask,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
    except OSError as error:
        return f"could not be started: {error.strerror}"
    finally:
        os.close(document)
    return _ended(child, time.monotonic() + COMMAND_S)


def _ended(child: int, until_s: float) -> str:
    while time.monotonic() < until_s:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return f"exit status {code}" if code >= 0 else f"ended by signal {-code}"
        time.sleep(_LOOK_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"killed: it took more than {COMMAND_S:g} s"


def post(url: str, facts: Facts, pause: Callable[[float], None] = time.sleep) -> str:
    """Post the facts to a webhook, a second time if that fails; returns what came of it.

    The text is Slack's. A redirect is not followed, and the body of the answer is not read. What is
    returned never contains the URL.
    """
    import urllib.request

    text = _escaped(str(facts.get("message", "")))
    body = json.dumps({"text": f"memdiag: {text}", "memdiag": facts}).encode("ascii")
    headers = {"Content-Type": "application/json", "User-Agent": "memdiag"}
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    failure = _try_post(request)
    if failure:
        pause(_PAUSE_S)
        failure = _try_post(request)
    return f"not delivered, after a second attempt: {failure}" if failure else "delivered"


def _try_post(request: Any) -> str:
    """Why a request failed, "" if it did not."""
    import urllib.error
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    try:
        with urllib.request.build_opener(NoRedirect).open(request, timeout=_TRY_S):
            return ""
    except urllib.error.HTTPError as error:
        error.close()
        return f"HTTP status {error.code}"
    except urllib.error.URLError as error:
        reason = error.reason
        return (isinstance(reason, OSError) and reason.strerror) or type(reason).__name__
    except OSError as error:
        return error.strerror or type(error).__name__
    except Exception as error:  # its text may contain the URL
        return type(error).__name__


def _escaped(text: str) -> str:
    """Text that cannot mention a channel or hide a link in Slack: names come from the target."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
