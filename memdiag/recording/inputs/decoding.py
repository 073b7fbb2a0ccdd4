"""Text in UTF-16, as PowerShell's `>` writes it, as UTF-8."""

from __future__ import annotations

import codecs

from memdiag.recording.inputs.spool import Readable

_LOOKED_AT = 200


def utf16(head: bytes) -> str | None:
    """The UTF-16 variant of the text by its BOM or by the place of zeros, None for other text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    even, odd = head[0:_LOOKED_AT:2], head[1:_LOOKED_AT:2]
    if len(odd) > 1 and any(even) and not any(odd):
        return "utf-16-le"
    return "utf-16-be" if len(odd) > 1 and any(odd) and not any(even) else None


class Decoded:
    """A stream of UTF-16 as UTF-8. Invalid characters are replaced."""

    def __init__(self, stream: Readable, flavour: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(flavour)(errors="replace")
        self._ahead = b""
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes; fewer only at the end."""
        while len(self._ahead) < size and not self._ended:
            piece = self._stream.read(size)
            self._ended = len(piece) < size
            text = self._decoder.decode(piece, final=self._ended)
            self._ahead += text.encode("utf-8", errors="replace")
        piece, self._ahead = self._ahead[:size], self._ahead[size:]
        return piece
