"""The keys of the live screen, and what reaches memdiag."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from screen.views import RAM, view_of

pytest.importorskip("textual")

from memdiag.report.plotting import figure
from memdiag.screen.app import LiveApp
from memdiag.screen.messages import Frame, Link, Order, Wish, WishKind, pair
from memdiag.values.measurements import Sample


def screen_of(app: Any) -> list[str]:
    return [line.plain for line in app.query_one("Lines")._lines]


def wishes(link: Link) -> list[Wish]:
    found = []
    while isinstance(message := link.receive(), Wish):
        found.append(message)
    return found


def on_screen(
    act: Callable[[Any, Any, Link], Awaitable[None]],
    *,
    size: tuple[int, int] = (80, 24),
    **job: Any,
) -> LiveApp:
    """Run the app without a terminal, and `act` on it: its pilot, the app, memdiag's end."""
    ours, theirs = pair()
    app = LiveApp(view_of(**job), theirs)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await act(pilot, app, ours)

    try:
        asyncio.run(run())
    finally:
        ours.close()
        theirs.close()
    return app


def test_series_are_chosen_by_tab_and_by_number():
    async def act(pilot, app, link):
        first = app._view.shown
        await pilot.press("tab")
        second = app._view.shown
        await pilot.press("shift+tab")
        assert app._view.shown == first != second
        await pilot.press("3")
        assert app._view.shown == app._view.series()[2]

    on_screen(act, processes=("a", "b"))


def test_leaving_a_job_of_memdiag_is_asked_about():
    async def act(pilot, app, link):
        await pilot.press("q")
        assert "l: leave the screen" in screen_of(app)[-1]
        await pilot.press("escape")
        assert wishes(link) == []
        assert "q leave" in screen_of(app)[-1]
        await pilot.press("q", "m", "q", "l")
        assert [wish.kind for wish in wishes(link)] == [WishKind.LEAVE]
        await pilot.press("q", "e")
        assert [wish.kind for wish in wishes(link)] == [WishKind.END]

    on_screen(act)


def test_a_watch_ends_at_once():
    async def act(pilot, app, link):
        await pilot.press("q")
        assert [wish.kind for wish in wishes(link)] == [WishKind.END]

    on_screen(act, is_ours=False)


@pytest.mark.parametrize(
    ("key", "number"),
    [
        ("ctrl+c", signal.SIGINT),
        ("ctrl+z", signal.SIGTSTP),
        ("ctrl+backslash", signal.SIGQUIT),
    ],
)
def test_keys_of_signals_are_sent_also_while_something_is_asked(key, number):
    async def act(pilot, app, link):
        await pilot.press(key, "q", key)
        assert [wish.signal for wish in wishes(link)] == [number, number]

    on_screen(act)


def test_a_paused_screen_keeps_taking_samples():
    async def act(pilot, app, link):
        await pilot.press("p")
        assert "PAUSED" in screen_of(app)[2]
        before = screen_of(app)
        sample = Sample(99.0, 100, "tree", {"rss_bytes": 9e9}, 990, "")
        link.send(Frame(samples=(sample,), elapsed_s=99.0, limits=(RAM,), is_whole=True))
        await pilot.pause(0.1)
        assert app._view.step == 990
        assert screen_of(app) == before
        await pilot.press("p")
        assert "step 990" in screen_of(app)[2]

    on_screen(act)


def test_the_clock_runs_without_frames():
    async def act(pilot, app, link):
        app._view._taken_s -= 100.0
        app._tick_between()
        assert screen_of(app)[2].startswith(" 0:02:10")

    on_screen(act)


def test_help_shows_the_keys_and_any_key_goes_back():
    async def act(pilot, app, link):
        await pilot.press("question_mark")
        assert "pause the screen" in "\n".join(screen_of(app))
        await pilot.press("q")
        assert wishes(link) == []
        assert "pause the screen" not in "\n".join(screen_of(app))

    on_screen(act)


def test_a_mark_is_drawn_and_reported():
    async def act(pilot, app, link):
        await pilot.press("m")
        assert [wish.kind for wish in wishes(link)] == [WishKind.MARK]
        assert "mark 1" in "\n".join(screen_of(app))

    on_screen(act)


def test_the_order_of_the_table_changes():
    async def act(pilot, app, link):
        await pilot.press("o")
        assert "RSS ↓" in "\n".join(screen_of(app))

    on_screen(act, processes=("a", "b"))


async def saved(pilot, app):
    """Press s, and wait for what is said of it."""
    await pilot.press("s")
    for _ in range(600):
        if "saved" in screen_of(app)[-1]:
            break
        await pilot.pause(0.1)
    return screen_of(app)[-1]


def test_a_picture_of_the_series_is_saved(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)

    async def act(pilot, app, link):
        said = await saved(pilot, app)
        assert said.startswith(" saved RSS of main to memdiag-20")

    on_screen(act, title="$\\frac{")
    (picture,) = tmp_path.iterdir()
    assert figure.PNG_OPENING.match(picture.read_bytes())


def test_without_matplotlib_the_screen_is_saved_and_is_inert(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    async def act(pilot, app, link):
        said = await saved(pilot, app)
        assert said.startswith(" saved the screen to memdiag-screen-20")
        assert "memdiag[plot]" in said

    size = (200, 24)
    on_screen(act, size=size, title="<script>alert(1)</script>", processes=("<img src=x>",))
    (picture,) = tmp_path.glob("memdiag-screen-*.svg")
    text = picture.read_text()
    assert "<script" not in text
    assert "<img" not in text
    assert "@font-face" not in text
    assert set(re.findall(r"https?://[^\s\"<]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "https://www.textualize.io",
    }


def test_a_picture_that_cannot_be_saved_is_a_message(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()

    async def act(pilot, app, link):
        assert "not saved: No such file" in await saved(pilot, app)

    on_screen(act)


def test_each_size_while_it_runs():
    async def act(pilot, app, link):
        for size in ((60, 20), (200, 60), (20, 5), (1, 1), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause(0.1)
        assert len(screen_of(app)) == 24

    assert not on_screen(act).failed


def test_the_end_of_memdiag_ends_the_screen():
    async def act(pilot, app, link):
        link.close()
        await pilot.pause(0.2)
        assert not app.is_running

    on_screen(act)


def test_it_leaves_when_memdiag_wants_the_terminal():
    async def act(pilot, app, link):
        link.send(Order.LEAVE)
        await pilot.pause(0.2)
        assert not app.is_running

    assert not on_screen(act).failed


def test_an_error_of_its_own_ends_it_with_a_reason():
    async def act(pilot, app, link):
        link.send(Frame(samples=("broken",)))
        await pilot.pause(0.3)

    with pytest.raises(AttributeError):
        on_screen(act)
