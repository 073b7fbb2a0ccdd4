"""A small terminal emulator: what a person sees of a stream of bytes.

Knows what programs under test and the status line use: text, CR, LF, saving and restoring the
cursor, a row down, scrolling regions, positioning, erasing a line, colours (ignored).
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\x1b([78D])|\x1b\[([0-9;?]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)", re.S)


class Screen:
    """rows: what stands on the screen; scrolled: lines that left it at the top."""

    def __init__(self, rows: int = 24, columns: int = 80) -> None:
        self.rows = [""] * rows
        self.scrolled: list[str] = []
        self.top, self.bottom = 0, rows - 1
        self.row = self.column = 0
        self._saved = (0, 0)
        self._columns = columns

    @property
    def text(self) -> list[str]:
        """Everything that can be seen or scrolled back to, blank lines left out."""
        return [line.rstrip() for line in (*self.scrolled, *self.rows) if line.strip()]

    def feed(self, data: bytes) -> None:
        """Show these bytes."""
        for cursor, arguments, final, control, text in _TOKEN.findall(data.decode()):
            if cursor == "D":
                self._down()
            elif cursor:
                self._save_or_restore(cursor)
            elif final:
                self._command(final, [int(a or 0) for a in arguments.strip("?").split(";")])
            elif control:
                self._control(control)
            else:
                self._print(text)

    def _save_or_restore(self, cursor: str) -> None:
        if cursor == "7":
            self._saved = (self.row, self.column)
        else:
            self.row, self.column = self._saved

    def _command(self, final: str, arguments: list[int]) -> None:
        last = len(self.rows) - 1
        if final == "r":
            top, bottom = (arguments * 2)[:2] if arguments != [0] else (1, last + 1)
            self.top, self.bottom = max(0, top - 1), min(last, bottom - 1)
            self.row = self.column = 0
        elif final == "H":
            self.row, self.column = min(last, arguments[0] - 1), 0
        elif final == "K":
            self.rows[self.row] = ""
        elif final == "A":
            self.row = max(0, self.row - (arguments[0] or 1))
        else:
            assert final in "mhl", f"unknown command {final}"

    def _control(self, control: str) -> None:
        if control == "\r":
            self.column = 0
        else:
            self._down()

    def _down(self) -> None:
        if self.row == self.bottom:
            line = self.rows.pop(self.top)
            if self.top == 0:
                self.scrolled.append(line)
            self.rows.insert(self.bottom, "")
        else:
            self.row = min(len(self.rows) - 1, self.row + 1)

    def _print(self, text: str) -> None:
        line = self.rows[self.row].ljust(self.column)
        self.rows[self.row] = line[: self.column] + text + line[self.column + len(text) :]
        self.column += len(text)
        assert self.column <= self._columns, "this emulator does not wrap lines"
