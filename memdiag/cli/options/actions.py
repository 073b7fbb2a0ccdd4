"""What `--on LEVEL=ACTION` does, and what is checked before the job begins."""

from __future__ import annotations

import enum
import os
import shlex
import shutil
import signal
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from memdiag.errors import UsageError
from memdiag.values.measurements import MarkLevel
from memdiag.values.sanitize import printable
from memdiag.values.thresholds import Threshold

# How long the connection that checks a webhook may take.
_CONNECT_S = 3.0
_REMEDY = "write warn=, critical= or leak= and note, stop, signal:USR1, exec:COMMAND or webhook:URL"
_PORTS = {"http": 80, "https": 443}


class Level(enum.Enum):
    """What an action answers."""

    WARN = "warn"
    CRITICAL = "critical"
    LEAK = "leak"


LEVEL_OF = {MarkLevel.WARNING: Level.WARN, MarkLevel.CRITICAL: Level.CRITICAL}
_OPTION_OF = {Level.WARN: "--warn-at", Level.CRITICAL: "--critical-at"}


@dataclass(frozen=True, slots=True)
class Note:
    """Print a line."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the job: SIGTERM, and SIGKILL after a grace period."""


@dataclass(frozen=True, slots=True)
class SendSignal:
    """Send a signal to the main process."""

    number: signal.Signals


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a command, without a shell. words: at least one, the program as given."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Webhook:
    """Post to a URL, which is a secret: it has no place in any output. Its `repr` hides it."""

    url: str

    def __repr__(self) -> str:
        return "Webhook(...)"


Action = Note | Stop | SendSignal | Execute | Webhook


@dataclass(frozen=True, slots=True)
class Reaction:
    """An action at a level."""

    level: Level
    action: Action


def parse_reaction(text: str, given_as: str) -> Reaction:
    """The reaction in `critical=signal:USR1`. Raises UsageError, which does not show a URL.

    given_as: the option, for messages.
    """
    name, _, rest = text.strip().partition("=")
    levels = {level.value: level for level in Level}
    kind, _, argument = rest.strip().partition(":")
    if name.strip() not in levels:
        raise _invalid(given_as, text, "unknown level")
    return Reaction(levels[name.strip()], _action(kind, argument.strip(), text, given_as))


def _action(kind: str, argument: str, text: str, given_as: str) -> Action:
    match kind, argument:
        case "webhook", url:
            return Webhook(_checked_url(url, given_as))
        case "exec", words:
            return Execute(_words(words, text, given_as))
        case "signal", name:
            return SendSignal(_signal(name, text, given_as))
        case "stop", "":
            return Stop()
        case "note", "":
            return Note()
        case _:
            raise _invalid(given_as, text, "unknown action")


def check(reactions: Sequence[Reaction], thresholds: Collection[Threshold]) -> None:
    """Check what cannot work although it is well-formed. Raises UsageError.

    A webhook's host is connected to, without a request.
    """
    levels = {LEVEL_OF[one.level] for one in thresholds} | {Level.LEAK}
    for reaction in reactions:
        if reaction.level not in levels:
            option = _OPTION_OF[reaction.level]
            raise UsageError(
                f"--on {reaction.level.value} requires {option}",
                remedy=f"give the level as well: {option} 90%",
            )
    for action in {reaction.action for reaction in reactions}:
        if isinstance(action, Execute) and program_of(action) is None:
            raise UsageError(
                f"command of --on not found: {printable(action.words[0])!r}",
                remedy="check the spelling, PATH, or give its full path",
            )
        if isinstance(action, Webhook):
            _check_reachable(action.url)


def program_of(action: Execute) -> str | None:
    """The full path of the program; None if there is none that can be executed."""
    found = shutil.which(action.words[0])
    return None if found is None else os.path.abspath(found)  # noqa: PTH100 - links stay links


def without_secrets(texts: Sequence[str], reactions: Sequence[Reaction]) -> list[str]:
    """The texts, with `...` in the place of URLs of webhooks."""
    hidden = list(texts)
    for reaction in reactions:
        if isinstance(reaction.action, Webhook):
            hidden = [text.replace(reaction.action.url, "...") for text in hidden]
    return hidden


def _words(argument: str, text: str, given_as: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(argument))
    except ValueError as error:
        raise _invalid(given_as, text, "a quote is not closed") from error
    if not words:
        raise _invalid(given_as, text, "no command")
    return words


def _signal(argument: str, text: str, given_as: str) -> signal.Signals:
    name = argument.upper().removeprefix("SIG")
    found = getattr(signal, f"SIG{name}", None)
    try:
        return found if isinstance(found, signal.Signals) else signal.Signals(int(argument))
    except ValueError as error:
        raise _invalid(given_as, text, "unknown signal") from error


def _checked_url(url: str, given_as: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError
    except ValueError:
        parts = urlsplit("")
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in _PORTS or not parts.hostname or not is_plain:
        raise UsageError(
            f"invalid URL of a webhook for {given_as} (not shown, since it may be a secret)",
            remedy="write webhook:https://HOST/PATH",
        )
    return url


def _check_reachable(url: str) -> None:
    """Raises UsageError if the host is unknown or refuses connections."""
    parts = urlsplit(url)
    if _has_proxy(parts.scheme, os.environ):
        return
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    try:
        socket.create_connection((host, port), timeout=_CONNECT_S).close()
    except TimeoutError:
        return  # a busy host is not an unknown one
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "not a host name"
        raise UsageError(
            f"the webhook of --on cannot be reached: {why}",
            remedy="check its host and port (the URL is not shown, since it may be a secret)",
        ) from error


def _has_proxy(scheme: str, environ: Mapping[str, str]) -> bool:
    return any(environ.get(name) for name in (f"{scheme}_proxy", f"{scheme.upper()}_PROXY"))


def _invalid(given_as: str, text: str, problem: str) -> UsageError:
    """The error, with the value unless it may contain a URL."""
    shown = "" if "://" in text else f" {printable(text)!r}"
    return UsageError(f"invalid value{shown} for {given_as}: {problem}", remedy=_REMEDY)
