"""What `--to` asks for, and what is checked before the job begins. Imports no tracker."""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from memdiag.errors import UsageError
from memdiag.values.sanitize import printable

# How long the connection that checks a server may take.
_CONNECT_S = 3.0
_PORTS = {"http": 80, "https": 443}
_NAMES = "wandb, mlflow, tensorboard[:DIR], prometheus[:PORT|:FILE.prom] or otlp[:URL]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A destination. requires: what must be importable. extra: what installs that."""

    requires: tuple[str, ...]
    extra: str


KINDS = {
    "wandb": _Kind(requires=("wandb",), extra="wandb"),
    "mlflow": _Kind(requires=("mlflow",), extra="mlflow"),
    "tensorboard": _Kind(requires=("tensorboard",), extra="tensorboard"),
    "prometheus": _Kind(requires=("prometheus_client",), extra="prometheus"),
    "otlp": _Kind(
        requires=("opentelemetry.sdk.metrics", "opentelemetry.exporter.otlp.proto.http"),
        extra="otlp",
    ),
}
# What a training's environment says of the run that it opens itself.
RUN_VARIABLES = (
    "MLFLOW_EXPERIMENT_ID",
    "MLFLOW_EXPERIMENT_NAME",
    "MLFLOW_RUN_ID",
    "MLFLOW_TRACKING_URI",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SERVICE_NAME",
    "WANDB_ENTITY",
    "WANDB_MODE",
    "WANDB_PROJECT",
    "WANDB_RUN_GROUP",
    "WANDB_RUN_ID",
)


@dataclass(frozen=True, slots=True)
class Request:
    """A destination. kind: a key of KINDS. where: what follows the colon, settled by `checked`."""

    kind: str
    where: str = ""

    def __str__(self) -> str:
        return f"--to {self.kind}"


def parse(text: str, given_as: str) -> Request:
    """The request in `prometheus:9760`. Raises UsageError. given_as: the option, for messages."""
    kind, _, where = text.strip().partition(":")
    if kind not in KINDS:
        raise UsageError(
            f"invalid value {printable(kind)!r} for {given_as}: unknown destination",
            remedy=f"write {_NAMES}",
        )
    return Request(kind, where.strip())


def checked(request: Request, environ: Mapping[str, str]) -> Request:
    """The request, settled. Raises UsageError if it cannot work.

    environ: of the run. A server is connected to, without a request.
    """
    kind = KINDS[request.kind]
    for name in kind.requires:
        if not _is_installed(name):
            raise UsageError(
                f"{request} needs {name}, which is not installed",
                remedy=f"pip install 'memdiag[{kind.extra}]'",
            )
    module = importlib.import_module(f"memdiag.destinations.{request.kind}")
    settled: str = module.checked(request.where, environ)
    return Request(request.kind, settled)


def _is_installed(name: str) -> bool:
    """A directory of that name, as W&B makes in the working directory, is not the package."""
    try:
        found = importlib.util.find_spec(name)
    except ImportError:
        return False
    return found is not None and (found.origin is not None or "." in name)


def checked_directory(path: str, given: str) -> str:
    """The directory in full. Raises UsageError if it cannot be written, or not be created."""
    full = os.path.abspath(path)  # noqa: PTH100 - links stay links
    there = full
    while not os.path.lexists(there):
        there = os.path.dirname(there)  # noqa: PTH120
    shown = printable(there if os.path.isabs(path) else os.path.relpath(there))  # noqa: PTH117
    if not os.path.isdir(there):  # noqa: PTH112 - never raises
        raise UsageError(f"{shown} is not a directory ({given})", remedy="name a directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"{shown} is not writable ({given})", remedy="name another directory")
    return full


def checked_url(url: str, given: str) -> str:
    """The URL of a server, if it is there. Raises UsageError if it is malformed or unreachable."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        parts, port = urlsplit(""), 0
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if not port or not parts.hostname or not is_plain:
        raise UsageError(f"invalid URL {printable(url)!r} ({given})", remedy="write http://HOST")
    if parts.username or parts.password:
        raise UsageError(
            f"the URL of {given} holds a password",
            remedy="give it in the variables that the tracker has for this (docs/trackers.md)",
        )
    if os.environ.get(f"{parts.scheme}_proxy") or os.environ.get(f"{parts.scheme.upper()}_PROXY"):
        return url
    try:
        socket.create_connection((parts.hostname, port), timeout=_CONNECT_S).close()
    except TimeoutError:
        return url  # a busy host is not an unknown one
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "not a host name"
        raise UsageError(
            f"cannot reach {parts.hostname}:{port}: {why} ({given})",
            remedy="check that the server runs, and its host and port",
        ) from error
    return url
