"""Reads a list of the processes with memory on a device in one call of the driver.

The functions of nvidia-ml-py call the driver twice for each list (the number of rows, then the
rows) and make an object of each row. With a buffer that is kept one call is enough: half of the
time in the driver's lock, which the target needs too, and a tenth of the processor time.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

# nvmlProcessInfo_t of versions 2 and 3 (nvml.h): pid, used memory, GPU and compute instance.
_ROW = struct.Struct("@IQII")
_NOT_AVAILABLE = 0xFFFFFFFFFFFFFFFF  # NVML_VALUE_NOT_AVAILABLE
_INSUFFICIENT_SIZE = 7  # NVML_ERROR_INSUFFICIENT_SIZE: the count says how many there are
_FIRST_ROOM = 64
# Rows of drivers 535.43 to 535.85 are a third longer, and must fit into the buffer.
_SLACK = 2


class RowBuffer:
    """Reads lists through the loaded `library` (nvidia-ml-py)."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._make_room(_FIRST_ROOM)

    def read(self, function: str, handle: Any) -> list[tuple[int, int | None]]:
        """(pid, bytes) of each row, bytes is None if unknown.

        Raises the exceptions of nvidia-ml-py.
        """
        call = self._library._nvmlGetFunctionPointer(function)
        while (code := self._call(call, handle)) == _INSUFFICIENT_SIZE:
            self._make_room(2 * max(self._count.value, self._room))
        self._library._nvmlCheckReturn(code)
        rows = _ROW.iter_unpack(self._view[: _ROW.size * self._count.value])
        return [(pid, None if used == _NOT_AVAILABLE else used) for pid, used, _, _ in rows]

    def _call(self, call: Any, handle: Any) -> int:
        self._count.value = self._room
        return int(call(handle, self._count_reference, self._buffer))

    def _make_room(self, rows: int) -> None:
        self._room = rows
        self._count = ctypes.c_uint(0)
        self._count_reference = ctypes.byref(self._count)
        self._buffer = ctypes.create_string_buffer(rows * _ROW.size * _SLACK)
        self._view = memoryview(self._buffer)
