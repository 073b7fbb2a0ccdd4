"""Images: what they show, that they look the same everywhere, and text that does not act."""

from __future__ import annotations

import itertools
import struct
from dataclasses import replace
from typing import Any

import pytest
from report import diagnoses

from memdiag.errors import UsageError
from memdiag.report.picture.model import Curve, Level, Mark, MarkKind, Picture
from memdiag.report.picture.of_finding import of_deciding
from memdiag.report.plotting import figure
from memdiag.report.plotting.figure import Place, Style, Theme
from memdiag.report.text.screen import Screen
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.readings import PhaseSpan

pytest.importorskip("matplotlib", reason="pictures need matplotlib (memdiag[plot])")

STYLES = [Style(theme=theme, place=place) for theme in Theme for place in Place]
HOSTILE = "$\\frac{$ <svg onload=alert(1)> _日本語 & </text>"


def picture(name: str) -> Picture:
    drawn = of_deciding(diagnoses.SCREENS[name]().recordings[0], Screen(width=100))
    assert drawn is not None
    return drawn


def hostile() -> Picture:
    ramp = tuple((float(x), 1e9 + x * 1e6) for x in range(50))
    marks = (
        Mark(x=3.0, label=HOSTILE, kind=MarkKind.CULPRIT),
        Mark(x=4.0, label="onset, step 4", kind=MarkKind.ONSET),
        Mark(x=48.0, label="--critical-at 80%", kind=MarkKind.THRESHOLD),
    )
    return Picture(
        title=HOSTILE,
        subject=HOSTILE * 9,
        unit=Unit.BYTES,
        axis=AxisKind.STEP,
        axis_word="step",
        curves=(
            Curve(name=f"_{HOSTILE}", points=ramp, marks=marks),
            Curve(name="_other", points=ramp[::-1]),
        ),
        levels=(Level(value=1.2e9, label=HOSTILE),),
        phases=(PhaseSpan(start_x=0.0, end_x=30.0, phase=HOSTILE),),
    )


@pytest.mark.parametrize("style", STYLES, ids=lambda style: f"{style.theme}-{style.place}")
def test_every_style_is_an_image_of_its_size(style: Style) -> None:
    image = figure.png([picture("leak")], style)
    assert figure.PNG_OPENING.match(image[:256])
    width, height = struct.unpack(">II", image[16:24])
    expected = {Place.PAGE: 1.95, Place.COLUMN: 1.4, Place.SLIDE: 16 / 9}[style.place]
    assert width / height == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("name", sorted(diagnoses.SCREENS))
def test_every_diagnosis_can_be_drawn(name: str) -> None:
    drawn = [
        of_deciding(found, Screen(width=100)) for found in diagnoses.SCREENS[name]().recordings
    ]
    assert figure.svg([one for one in drawn if one is not None], Style()).endswith(b"</svg>\n")


def test_text_from_outside_is_text() -> None:
    image = figure.svg([hostile()], Style()).decode()
    assert figure.SVG_OPENING.match(image.encode())
    assert "<svg onload" not in image
    assert image.count("&lt;svg onload=alert(1)&gt;") >= 3
    assert image.count("_other") == 1
    assert figure.png([hostile()], Style())


def test_the_same_diagnosis_gives_the_same_image() -> None:
    for save in (figure.png, figure.svg):
        assert save([picture("leak")], Style()) == save([picture("leak")], Style())


@pytest.mark.parametrize("style", STYLES, ids=lambda style: f"{style.theme}-{style.place}")
def test_labels_do_not_cover_each_other(style: Style) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    marked = replace(hostile(), title="LEAK +1 MB per step", subject="run.csv: RSS")
    short = tuple(
        replace(m, label=m.label[-16:].replace("日本語", "")) for m in marked.curves[0].marks
    )
    curve = replace(marked.curves[0], name="RSS of rank1", marks=short)
    marked = replace(
        marked,
        curves=(curve,),
        levels=(Level(value=1.3e9, label="GPU 0, 1.30 GB"),),
        phases=(PhaseSpan(start_x=0.0, end_x=30.0, phase="eval"),),
    )
    drawn: Any = figure.figure([marked], style)

    renderer = FigureCanvasAgg(drawn).get_renderer()
    drawn.draw(renderer)
    (axes,) = drawn.axes
    texts = [axes.title, axes._left_title, axes.xaxis.label, *axes.texts]
    texts += [*axes.get_xticklabels(), *axes.get_legend().get_texts()]
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in texts if t.get_text()]
    for (one, box), (other, beside) in itertools.combinations(boxes, 2):
        assert not box.padded(-1).overlaps(beside.padded(-1)), (one, other)


def test_curves_differ_without_color() -> None:
    drawn: Any = figure.figure([hostile()], Style())
    lines = drawn.axes[0].get_lines()[:2]
    assert lines[0].get_linestyle() != lines[1].get_linestyle()


def test_no_recording_is_an_image_that_says_so() -> None:
    assert b"nothing was measured" in figure.svg([], Style())


def test_a_style_is_named_by_words() -> None:
    assert figure.style_of("") == Style()
    assert figure.style_of("slide, Dark") == Style(theme=Theme.DARK, place=Place.SLIDE)
    with pytest.raises(UsageError, match="'huge' for --picture-style"):
        figure.style_of("dark,huge")
