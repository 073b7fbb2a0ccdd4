"""Functions of a running process are found where they are."""

from __future__ import annotations

import ctypes
import os

from memdiag.capture.probelink import inject
from memdiag.capture.probelink.elf_symbols import exported, mapped_files


def test_addresses_of_functions_are_those_that_the_loader_gives() -> None:
    expected = ctypes.cast(ctypes.pythonapi.Py_AddPendingCall, ctypes.c_void_p).value
    found = inject._addresses(os.getpid())
    assert found["Py_AddPendingCall"] == expected


def test_file_that_is_no_program_exports_nothing(tmp_path) -> None:
    (file, *_) = mapped_files(os.getpid())
    for content in (b"", b"text", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + bytes(200)):
        (tmp_path / "x").write_bytes(content)
        broken = type(file)(name="x", path=tmp_path / "x", start=0)
        assert exported(broken, frozenset({"main"})) == {}
