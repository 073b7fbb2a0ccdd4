"""The HTML report in a browser: it opens from a file, its charts work, and nothing from outside
acts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import browser, why_not
from report import diagnoses
from report.test_html import HOSTILE_PHASE, HOSTILE_SERIES, hostile

from memdiag.analysis.comparison.compare import compare
from memdiag.analysis.diagnose import diagnose
from memdiag.analysis.readings import with_readings
from memdiag.report.formats.html import page
from memdiag.values.findings import Diagnosis
from memdiag.values.measurements import Axis, AxisKind, Phases, Recording, Role, Series, Unit

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=f"no browser: {why_not()}"),
]
STEPS = np.arange(400.0)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a page from a file. At the end: no error, and no request but for the file."""
    troubles: list[str] = []
    context = chromium.new_context(viewport={"width": 1000, "height": 800})
    tab = context.new_page()
    tab.on("console", lambda message: troubles.append(f"console: {message.text}"))
    tab.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    tab.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
    file = tmp_path / "report.html"
    tab.on(
        "request",
        lambda asked: (
            None
            if asked.url.split("#")[0] == file.as_uri() or asked.url.startswith(("blob:", "data:"))
            else troubles.append(f"request: {asked.url}")
        ),
    )

    def open_page(text: str) -> Any:
        file.write_text(text, encoding="utf-8")
        tab.goto(file.as_uri())
        return tab

    yield open_page
    context.close()
    assert troubles == []


def series(y: np.ndarray, process: str = "", **more: Any) -> Series:
    return Series(
        metric="rss_bytes",
        column="rss_bytes",
        role=Role.RESIDENT,
        unit=Unit.BYTES,
        axis=Axis(name="step", kind=AxisKind.STEP),
        x=np.arange(len(y), dtype=float),
        y=y,
        process=process,
        **more,
    )


def leaking() -> Recording:
    codes = np.asarray((STEPS // 50) % 2, dtype=int)
    phases = Phases(codes=codes, names=("train", "eval"))
    return Recording(
        source="run.csv",
        series=(
            series(1e9 + 1e6 * STEPS, "rank1", phases=phases),
            series(np.full(400, 1e9), "rank0", phases=phases),
        ),
    )


def judged(*recordings: Recording) -> Diagnosis:
    return Diagnosis(recordings=tuple(with_readings(diagnose(one), one) for one in recordings))


def hover(tab: Any, across: float) -> str:
    """The text beside the pointer at this part of the width of the first chart."""
    over = tab.locator(".u-over").first
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    tab.mouse.move(box["x"] + across * box["width"], box["y"] + box["height"] / 2)
    tip = tab.locator(".tip").first
    tip.wait_for(state="visible")
    return str(tip.inner_text())


def step_of(text: str) -> int:
    found = re.match(r"step ([\d,]+)", text)
    assert found is not None, text
    return int(found[1].replace(",", ""))


def test_verdict_comes_first_and_the_chart_is_drawn(opened: Any) -> None:
    tab = opened(page.diagnosis(judged(leaking()), 1))
    assert tab.locator("h1").first.inner_text().startswith("LEAK")
    assert "MB per step" in tab.locator("h1").first.inner_text()
    assert tab.locator("canvas").count() == 1
    ink = tab.evaluate(
        "() => { const c = document.querySelector('canvas');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 200; return n; }"
    )
    assert ink > 2000


def test_pointer_shows_step_phase_and_bytes(opened: Any) -> None:
    tab = opened(page.diagnosis(judged(leaking()), 1))
    text = hover(tab, 0.5)
    step = step_of(text)
    assert text.split("\n")[0].endswith(", eval" if (step // 50) % 2 else ", train")
    assert f"RSS of rank1: {1 + step / 1000:.2f} GB" in text
    assert "RSS of rank0: 1.00 GB" in text
    assert "segment: +1.00 MB per step" in text


def test_zoom_shows_a_part_of_the_run_and_back(opened: Any) -> None:
    tab = opened(page.diagnosis(judged(leaking()), 1))
    whole = step_of(hover(tab, 0.9)) - step_of(hover(tab, 0.1))
    box = tab.locator(".u-over").first.bounding_box()
    middle = box["y"] + box["height"] / 2
    tab.mouse.move(box["x"] + 0.2 * box["width"], middle)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 0.4 * box["width"], middle, steps=4)
    tab.mouse.up()
    part = step_of(hover(tab, 0.9)) - step_of(hover(tab, 0.1))
    assert part == pytest.approx(0.2 * whole, rel=0.2)
    tab.get_by_role("button", name="Zoom out").click()
    assert step_of(hover(tab, 0.9)) - step_of(hover(tab, 0.1)) > 1.5 * part
    tab.get_by_role("button", name="Show the whole run").click()
    assert step_of(hover(tab, 0.9)) - step_of(hover(tab, 0.1)) == whole


def test_series_are_switched_off_and_on(opened: Any) -> None:
    tab = opened(page.diagnosis(judged(leaking()), 1))
    box = tab.get_by_label("RSS of rank0")
    assert box.is_checked()
    box.uncheck()
    assert "rank0" not in hover(tab, 0.5)
    box.check()
    assert "rank0" in hover(tab, 0.6)


def test_all_series_of_a_process_are_switched_at_once(opened: Any) -> None:
    from dataclasses import replace

    known = leaking()
    uss = tuple(replace(one, metric="uss_bytes", column="uss_bytes") for one in known.series)
    tab = opened(page.diagnosis(judged(replace(known, series=(*known.series, *uss))), 1))
    tab.get_by_label("all of rank0").uncheck()
    text = hover(tab, 0.5)
    assert "rank0" not in text
    assert "rank1" in text


def test_spike_of_one_reading_in_a_long_run_is_drawn(opened: Any) -> None:
    y = np.full(300_000, 1e9)
    y[123_456] = 2e9
    tab = opened(page.diagnosis(judged(Recording(source="a.csv", series=(series(y),))), 0))
    points = tab.evaluate(
        "() => { const d = JSON.parse(document.getElementById('data').textContent);"
        " const c = d.charts[0][0].curves[0]; return [c.x[c.y.indexOf(2e9)], Math.max(...c.y)]; }"
    )
    assert points == [123_456, 2e9]
    top = tab.evaluate(
        "() => { const c = document.querySelector('canvas'), r = c.getContext('2d');"
        " const d = r.getImageData(0, 0, c.width, Math.round(c.height / 3)).data;"
        " let n = 0; for (let i = 0; i < d.length; i += 4)"
        " n += d[i + 3] > 200 && d[i] < 80 && d[i + 2] > 150; return n; }"
    )
    assert top > 10  # blue in the upper third


def test_hostile_names_are_shown_and_inert(opened: Any) -> None:
    tab = opened(page.diagnosis(hostile(), 1))
    assert HOSTILE_SERIES in tab.locator(".curves").first.inner_text()
    assert HOSTILE_PHASE in tab.locator(".phases").first.inner_text()
    assert tab.locator("img").count() == 0
    assert HOSTILE_SERIES in hover(tab, 0.5)


def test_findings_and_readings_are_downloaded(opened: Any, tmp_path: Path) -> None:
    tab = opened(page.diagnosis(hostile(), 1))
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name="Findings as JSON").click()
    waiting.value.save_as(tmp_path / "found.json")
    assert json.loads((tmp_path / "found.json").read_text())["verdict"] == "leak"
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name="Readings of the charts as CSV").click()
    waiting.value.save_as(tmp_path / "readings.csv")
    lines = (tmp_path / "readings.csv").read_text().splitlines()
    assert lines[0] == "series,unit,axis,position,value"
    assert lines[1].endswith(",bytes,step,0,1000000000")
    assert len(lines) == 1 + 2 * 400


def test_readings_at_one_position_are_drawn_and_downloaded_at_it(
    opened: Any, tmp_path: Path
) -> None:
    from dataclasses import replace

    y = np.where(np.arange(400) % 2, 2e9, 1e9)
    twice = replace(series(y), x=np.repeat(np.arange(200.0), 2))
    tab = opened(page.diagnosis(judged(Recording(source="a.csv", series=(twice,))), 0))
    assert step_of(hover(tab, 0.5)) in range(95, 105)
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name="Readings of the charts as CSV").click()
    waiting.value.save_as(tmp_path / "readings.csv")
    rows = [line.split(",")[-2:] for line in (tmp_path / "readings.csv").read_text().splitlines()]
    assert rows[1:3] == [["0", "1000000000"], ["0", "2000000000"]]
    assert rows[-1][0] == "199"


def test_processes_are_shown_below_their_parents(opened: Any) -> None:
    from dataclasses import replace

    processes = [
        {"label": "rank0", "pid": 2, "parent_pid": 1},
        {"label": "rank1", "pid": 3, "parent_pid": 2, "role": "<b>worker</b>"},
    ]
    tab = opened(page.diagnosis(judged(replace(leaking(), about={"processes": processes})), 1))
    table = tab.locator("details", has_text="Processes").locator("tbody tr")
    shown = [text.replace("\u2003", "  ") for text in table.all_text_contents()]
    assert shown[0].startswith("rank0")
    assert shown[1].startswith("\u2514 rank1<b>worker</b>")
    assert "+1.00 MB per step" in shown[1]


def test_several_recordings_are_a_sortable_table_with_a_page_each(opened: Any) -> None:
    flat = Recording(source="b.csv", series=(series(np.full(400, 3e9)),))
    tab = opened(page.diagnosis(judged(flat, leaking()), 1))
    rows = tab.locator(".sortable tbody tr")
    assert rows.count() == 2
    assert "LEAK" in rows.first.inner_text()
    assert tab.locator(".sortable svg path").count() == 2
    tab.get_by_role("button", name="peak").click()
    assert "run.csv" in rows.first.inner_text()
    tab.get_by_role("button", name="peak").click()
    assert "b.csv" in rows.first.inner_text()
    tab.get_by_role("link", name="run.csv").click()
    tab.locator("canvas").first.wait_for()
    assert tab.locator("h1:visible").inner_text().startswith("LEAK")
    tab.get_by_role("link", name="All recordings").click()
    assert rows.first.is_visible()


def test_comparison_shows_both_runs_and_their_difference(opened: Any) -> None:
    flat = Recording(source="after.csv", series=(series(np.full(400, 1e9), "rank1"),))
    compared = compare([diagnose(leaking())], [diagnose(flat)])
    tab = opened(page.comparison(compared, 0))
    assert tab.locator("h1").inner_text().startswith("FIXED")
    assert tab.locator("canvas").count() == 2
    text = hover(tab, 0.5)
    assert "after: " in text
    assert "before: " in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1000])
def test_page_fits_its_window_in_both_schemes(opened: Any, scheme: str, width: int) -> None:
    tab = opened(page.diagnosis(diagnoses.SCREENS["leak"](), 1))
    tab.emulate_media(color_scheme=scheme)
    tab.set_viewport_size({"width": width, "height": 700})
    tab.wait_for_function(f"document.documentElement.scrollWidth <= {width}")
    paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    tab.emulate_media(media="print", color_scheme=scheme)


def test_page_without_scripts_has_the_verdict_and_a_drawing(chromium: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page.diagnosis(judged(leaking()), 1), encoding="utf-8")
    context = chromium.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(file.as_uri())
    assert "LEAK" in tab.locator("h1").inner_text()
    assert tab.locator(".waiting svg path").count() == 1
    context.close()
