"""What holds for all tests."""

from __future__ import annotations

import os
import signal


def pytest_configure() -> None:
    """Start from the dispositions of a person's shell, and without a runtime directory.

    Tests that look for channels name the place by TMPDIR.

    A job in the background or under nohup ignores SIGINT, SIGQUIT or SIGHUP and hands that down,
    and the programs that the tests send signals to would ignore them as well.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    os.environ.pop("XDG_RUNTIME_DIR", None)
