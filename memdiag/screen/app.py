"""The live screen in Textual: keys, sizes, and what has changed goes to the terminal."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from memdiag.errors import UsageError
from memdiag.report.plotting import figure
from memdiag.screen import panes
from memdiag.screen.layout import Layout
from memdiag.screen.messages import Frame, Link, Order, Wish, WishKind
from memdiag.screen.view import ORDERS, View
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from textual.events import Key, Resize

_EVERY_S = 1.0  # without a frame: a frame is drawn when it comes
_MESSAGE_S = 8.0
# The picture must not load anything from the network.
_WEB_FONTS = re.compile(r"@font-face\s*\{[^}]*\}")
_ASKS = "The job runs on. l: leave the screen   e: end the job   Esc: stay"


class Lines(Widget):
    """Shows lines; only those that have changed are drawn."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[Text] = []

    def show(self, lines: list[Text]) -> None:
        """Show these lines."""
        before, self._lines = self._lines, lines
        changed = [
            Region(0, at, self.size.width, 1)
            for at, line in enumerate(lines)
            if at >= len(before) or before[at] != line or before[at].spans != line.spans
        ]
        if len(before) != len(lines):
            self.refresh()
        elif changed:
            self.refresh(*changed)

    def on_resize(self) -> None:
        """Let the app draw for the new size."""
        self.app.call_later(self.app.draw)  # type: ignore[attr-defined]

    def render_line(self, y: int) -> Strip:
        """One line, as wide as the widget."""
        line = self._lines[y] if y < len(self._lines) else Text("")
        strip = Strip(line.render(self.app.console, end=""))
        return strip.adjust_cell_length(self.size.width)


class LiveApp(App[None]):
    """The screen. failed: why it ended by itself, "" if it did not."""

    CSS = "Screen { overflow: hidden; } Lines { width: 100%; height: 100%; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "leave"),
        Binding("p", "pause", "pause"),
        Binding("tab", "next_series(1)", "series", priority=True),
        Binding("shift+tab", "next_series(-1)", priority=True, show=False),
        Binding("m", "mark", "mark"),
        Binding("s", "save", "save"),
        Binding("o", "order", "order"),
        Binding("question_mark,h", "help", "help"),
        Binding("ctrl+c", "send('SIGINT')", priority=True, show=False),
        Binding("ctrl+q", "leave", priority=True, show=False),
        Binding("ctrl+z", "send('SIGTSTP')", priority=True, show=False),
        Binding("ctrl+backslash", "send('SIGQUIT')", priority=True, show=False),
        *(Binding(str(at), f"series({at})", show=False) for at in range(1, 10)),
    ]

    def __init__(self, view: View, link: Link) -> None:
        super().__init__(ansi_color=True)
        self._view, self._link = view, link
        self._layout_of_panes = Layout(view)
        self._canvas = Lines()
        self._is_paused = self._asks = self._helps = False
        self._message = ""
        self._message_until_s = 0.0
        self._is_dirty = True
        self._known_size: Size | None = None
        self.failed = ""

    def compose(self) -> ComposeResult:
        """One widget has the whole screen."""
        yield self._canvas

    def on_mount(self) -> None:
        """Begin to receive."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._link.fileno(), self._try_to_receive)
        if not self.is_headless:
            loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        self.set_interval(_EVERY_S, self._tick_between)

    def on_unmount(self) -> None:
        """Stop receiving."""
        asyncio.get_running_loop().remove_reader(self._link.fileno())

    def on_resize(self, event: Resize) -> None:
        """Let the job know of a new size."""
        if self._known_size not in {None, event.size} and not self.is_headless:
            self._ask(WishKind.SIGNAL, signal.SIGWINCH)
        self._known_size = event.size

    def _draw_anew(self) -> None:
        """Draw everything: the user has done something."""
        self._layout_of_panes.forget()
        self.draw()

    def draw(self) -> None:
        """Draw what has changed."""
        width, height = self._canvas.size
        if width < 1 or height < 1:
            return
        if self._helps:
            self._canvas.show(_filled(panes.help_lines(self._view, width), height))
            return
        self._is_dirty = False
        self._canvas.show(
            self._layout_of_panes.lines(
                width, height, is_paused=self._is_paused, message=self._message
            )
        )

    def on_key(self, event: Key) -> None:
        """Answers to the question about leaving; any key ends the help."""
        if self._helps:
            self._helps = False
            event.prevent_default().stop()
            self.draw()
        elif self._asks:
            self._asks = False
            self._note("")
            event.prevent_default().stop()
            if event.key == "l":
                self._ask(WishKind.LEAVE)
            elif event.key == "e":
                self._ask(WishKind.END)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only answers count while something is asked."""
        if action == "send":
            return True
        return not (self._asks or self._helps)

    def action_leave(self) -> None:
        """Leave: the job that memdiag has started is asked about."""
        if self._view.about.is_ours:
            self._asks = True
            self._note(_ASKS, lasts_s=1e9)
        else:
            self._ask(WishKind.END)

    def action_pause(self) -> None:
        """Pause or continue drawing."""
        self._is_paused = not self._is_paused
        self._draw_anew()

    def action_next_series(self, by: int) -> None:
        """Show the next series."""
        self._view.choose_next(by)
        self._draw_anew()

    def action_series(self, number: int) -> None:
        """Show a series by its number."""
        self._view.choose(number - 1)
        self._draw_anew()

    def action_order(self) -> None:
        """Sort the table by the next column."""
        self._view.order = ORDERS[(ORDERS.index(self._view.order) + 1) % len(ORDERS)]
        self._draw_anew()

    def action_mark(self) -> None:
        """Mark this moment."""
        self._view.mark()
        self._layout_of_panes.forget()
        self._ask(WishKind.MARK)
        self._note(f"marked as mark {len(self._view.marks)}")

    def action_help(self) -> None:
        """Show what the keys do."""
        self._helps = True
        self.draw()

    async def action_save(self) -> None:
        """Save a picture of the series that is shown; of the screen if it cannot be drawn."""
        picture, drawn, why = panes.picture_to_save(self._view), b"", "there are no readings yet"
        if picture is not None:
            self._note("drawing a picture")
            try:
                drawn = await asyncio.to_thread(figure.png, [picture], figure.Style())
            except UsageError as error:
                why = error.remedy
            except Exception as error:  # of matplotlib
                why = str(error)
        name = f"memdiag-{datetime.now(timezone.utc):%Y%m%d-%H%M%S}.png"
        what = f"{picture.curves[0].name} to {name}" if picture is not None else ""
        if not drawn:
            drawn = _WEB_FONTS.sub("", self.export_screenshot(title=self._title())).encode()
            name = name.replace("memdiag-", "memdiag-screen-").replace(".png", ".svg")
            what = f"the screen to {name} ({why})"
        try:
            with Path(name).open("xb") as file:
                file.write(drawn)
        except OSError as error:
            self._note(f"not saved: {error.strerror}")
        else:
            self._note(f"saved {what}")

    def action_send(self, name: str) -> None:
        """Send the job the signal of a key."""
        number = signal.Signals[name]
        if number is not signal.SIGTSTP or self._view.about.can_stop:
            self._ask(WishKind.SIGNAL, number)

    def _title(self) -> str:
        return f"memdiag: {printable(self._view.about.title)}"

    def _ask(self, kind: WishKind, number: signal.Signals | None = None) -> None:
        self._link.send(Wish(kind=kind, signal=number))
        if not self.is_headless and not self._link.is_closed:
            os.kill(os.getppid(), signal.SIGCHLD)  # wakes memdiag between two samples

    def _note(self, message: str, *, lasts_s: float = _MESSAGE_S) -> None:
        self._message = message and f" {message}"
        self._message_until_s = asyncio.get_running_loop().time() + lasts_s
        self.draw()

    def _try_to_receive(self) -> None:
        try:
            self._receive()
        except Exception as error:  # the loop would only log it
            self._handle_exception(error)

    def _receive(self) -> None:
        while (message := self._link.receive()) is not None:
            if isinstance(message, Frame):
                self._view.take(message)
                self._is_dirty = self._is_dirty or message.is_whole
            elif message is Order.LEAVE:
                self.exit()
        if self._link.is_closed:
            self.exit()
        elif self._is_dirty:
            self._tick()

    def _hang_up(self) -> None:
        self._ask(WishKind.SIGNAL, signal.SIGHUP)

    def _tick_between(self) -> None:
        """Keep the clock running if frames are rare."""
        self._is_dirty = self._is_dirty or self._view.is_waiting(_EVERY_S)
        self._tick()

    def _tick(self) -> None:
        if not self.is_headless and os.tcgetpgrp(0) != os.getpgrp():
            self.exit()  # a shell has taken the terminal
            return
        before = self._view.said.latest
        self._is_dirty = self._view.look() or self._is_dirty
        if self._view.said.latest != before:
            self._note(self._view.said.latest)
        if self._message and asyncio.get_running_loop().time() > self._message_until_s:
            self._message = ""
            self._is_dirty = True
        if self._is_dirty and not self._is_paused:
            self.draw()

    def _handle_exception(self, error: Exception) -> None:
        """Textual would print the traceback; memdiag reports the reason in a line."""
        self.failed = f"{type(error).__name__}: {error}"
        super()._handle_exception(error)
        self._exit_renderables.clear()


def _filled(lines: list[Text], height: int) -> list[Text]:
    return [*lines[:height], *([Text("")] * (height - len(lines)))]
