"""`--to`: what is refused before the job begins."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from commandline import called

from memdiag.destinations import request
from memdiag.destinations.request import Request, checked, parse
from memdiag.errors import UsageError


@pytest.mark.parametrize(
    ("text", "kind", "where"),
    [
        ("wandb", "wandb", ""),
        ("tensorboard:logs/a b", "tensorboard", "logs/a b"),
        ("prometheus:127.0.0.1:0", "prometheus", "127.0.0.1:0"),
        ("otlp:http://collector:4318", "otlp", "http://collector:4318"),
    ],
)
def test_a_destination_is_a_name_and_a_place(text: str, kind: str, where: str) -> None:
    assert parse(text, "--to") == Request(kind, where)


def test_an_unknown_destination_is_an_error(tmp_path: Path) -> None:
    found = called("run", "-o", tmp_path / "r.csv", "--to", "graphite\x1b[31m", "--", "true")
    assert found.returncode == 2
    assert found.stderr.startswith(
        "memdiag: error: invalid value 'graphite\\\\x1b[31m' for --to: unknown destination\n"
    )
    assert not (tmp_path / "r.csv").exists()


def test_a_package_that_is_not_installed_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A directory of its name is not the package: W&B makes one where it runs."""
    (tmp_path / "not_there").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    kind = request._Kind(requires=("not_there",), extra="wandb")
    monkeypatch.setitem(request.KINDS, "wandb", kind)
    with pytest.raises(UsageError, match="--to wandb needs not_there") as error:
        checked(Request("wandb"), {})
    assert error.value.remedy == "pip install 'memdiag[wandb]'"


def test_a_port_in_use_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}: Address already"):
            checked(Request("prometheus", str(port)), {})


@pytest.mark.parametrize("where", ["http", "65536", "-1", "127.0.0.1:x"])
def test_what_is_not_a_port_is_an_error(where: str) -> None:
    with pytest.raises(UsageError, match="not a port"):
        checked(Request("prometheus", where), {})


def test_a_server_that_refuses_connections_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UsageError, match=f"cannot reach 127.0.0.1:{port}: Connection refused"):
        checked(Request("otlp"), {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"})


@pytest.mark.parametrize("url", ["collector:4318", "ftp://host", "http://", "http://host:port"])
def test_a_malformed_url_is_an_error(url: str) -> None:
    with pytest.raises(UsageError, match="invalid URL"):
        checked(Request("otlp", url), {})


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError, match="holds a password") as error:
        checked(Request("otlp", "http://me:s3cr3t@localhost:4318"), {})
    assert "s3cr3t" not in str(error.value)


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file is not a directory"):
        checked(Request("tensorboard", str(tmp_path / "file" / "logs")), {})


def test_a_file_that_memdiag_did_not_write_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "node.prom"
    path.write_text("# HELP node_load1 1m load average.\n")
    with pytest.raises(UsageError, match="was not written by memdiag"):
        checked(Request("prometheus", str(path)), {})
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="was not written by memdiag"):
        checked(Request("prometheus", str(path)), {})
