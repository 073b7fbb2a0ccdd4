"""What keeps memdiag from letting the probe in is told, each with what to try."""

from __future__ import annotations

import os

import pytest

from memdiag.capture.probelink.ptrace import Refused
from memdiag.capture.probelink.ptrace_permission import why_forbidden, why_not_traced


@pytest.mark.parametrize(
    ("scope", "privileged", "words", "remedy"),
    [
        (1, False, "is 1, which allows a process to debug only its own children", "root"),
        (2, False, "ptrace_scope is 2", "--cap-add=SYS_PTRACE"),
        (3, True, "forbids debugging until the next boot", "memdiag run"),
        (0, True, "protects itself", "root"),
    ],
)
def test_what_forbids_to_trace_is_told_with_a_remedy(scope, privileged, words, remedy) -> None:
    why, try_this = why_forbidden(scope=scope, privileged=privileged)
    assert words in why
    assert remedy in try_this


def test_container_without_the_right_to_trace_is_told(monkeypatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    why, remedy = why_forbidden(scope=0, privileged=False)
    assert why == "this container has no CAP_SYS_PTRACE"
    assert "--cap-add=SYS_PTRACE" in remedy


def test_what_kept_us_out_is_told_in_a_sentence() -> None:
    denied = why_not_traced(7, PermissionError(1, "Operation not permitted"))
    assert "--cap-add=SYS_PTRACE" in denied
    assert why_not_traced(7, OSError(5, "odd\x1b[2J")).endswith(
        "attached to process 7: odd\\x1b[2J; the process continues as before"
    )
    assert "it took too long; the process continues" in why_not_traced(
        7, Refused("it took too long")
    )
