"""The HTML report as text: it loads nothing, everything from outside is escaped, it stays small."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from report import diagnoses
from report.test_in_memory import CRASHED

from memdiag.analysis.diagnose import diagnose
from memdiag.analysis.readings import with_readings
from memdiag.report.formats.html import page
from memdiag.report.formats.html.charts import chart
from memdiag.report.picture.model import Curve, Picture
from memdiag.values.findings import Diagnosis
from memdiag.values.measurements import (
    Axis,
    AxisKind,
    Phases,
    Recording,
    Role,
    Series,
    Unit,
)

HOSTILE_PHASE = "<img src=x onerror=alert(1)>"
HOSTILE_SERIES = '</script><b>"2"{{ 7*7 }}&amp;'
# Elements that load something, or act.
LOADING = {"img", "iframe", "object", "embed", "audio", "video", "source", "form", "base", "frame"}


class Elements(HTMLParser):
    """The start tags of a page, and the texts of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in {"script", "style"} and data.strip():
            self.raw.append((self.tags[-1][0], data))


def hostile() -> Diagnosis:
    """A recording whose names are HTML."""
    steps = np.arange(400.0)
    codes = np.asarray((steps // 20) % 2, dtype=int)
    leak = Series(
        metric=HOSTILE_SERIES,
        column=HOSTILE_SERIES,
        role=Role.RESIDENT,
        unit=Unit.BYTES,
        axis=Axis(name="step", kind=AxisKind.STEP),
        x=steps,
        y=1e9 + 1e6 * steps,
        process=HOSTILE_SERIES,
        phases=Phases(codes=codes, names=(HOSTILE_PHASE, "eval")),
    )
    recording = Recording(
        source=f"{HOSTILE_SERIES}.csv",
        series=(leak, replace(leak, process="rank0", y=np.full(400, 1e9))),
        notes=(HOSTILE_SERIES,),
        about={"command": [HOSTILE_PHASE, HOSTILE_SERIES], HOSTILE_SERIES: {"a": HOSTILE_PHASE}},
    )
    return Diagnosis(recordings=(with_readings(diagnose(recording), recording),))


def embedded(text: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("name", sorted(diagnoses.SCREENS))
def test_every_diagnosis_is_a_page_that_loads_nothing(name: str) -> None:
    text = page.diagnosis(diagnoses.SCREENS[name](), 1)
    assert text.startswith(page.BEGINNING)
    parsed = Elements(text)
    assert not LOADING & {tag for tag, _ in parsed.tags}
    for tag, attributes in parsed.tags:
        assert not any(key.startswith("on") or key == "style" for key in attributes), tag
        for key in ("src", "href"):
            value = attributes.get(key) or "#"
            assert value.startswith(("#", "data:,")), (tag, value)


def test_policy_allows_the_scripts_and_the_style_of_the_page_and_nothing_else() -> None:
    parsed = Elements(page.diagnosis(hostile(), 1))
    policy = next(
        a["content"] or ""
        for tag, a in parsed.tags
        if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split(";")}
    assert rules["default-src"] == ["'none'"]
    assert "unsafe" not in policy
    for kind, texts in (("script", rules["script-src"]), ("style", rules["style-src"])):
        shown = [text for tag, text in parsed.raw if tag == kind and not text.startswith("{")]
        digests = [hashlib.sha256(text.encode()).digest() for text in shown]
        assert texts == [f"'sha256-{base64.b64encode(one).decode()}'" for one in digests]


def test_text_from_outside_is_shown_and_is_no_markup() -> None:
    text = page.diagnosis(hostile(), 1)
    tags = [tag for tag, _ in Elements(text).tags]
    assert "img" not in tags
    assert tags.count("script") == 3
    visible = text.split('<script type="application/json"')[0]
    assert "&lt;img src=x onerror=alert(1)&gt;" in visible
    assert "&lt;/script&gt;&lt;b&gt;&#34;2&#34;{{ 7*7 }}&amp;amp;" in visible
    (found,) = embedded(text)["charts"]  # type: ignore[misc]
    assert HOSTILE_SERIES in found[0]["curves"][0]["name"]
    assert found[0]["phase_names"] == [HOSTILE_PHASE, "eval"]


def test_the_document_in_the_page_is_the_json_report() -> None:
    from memdiag.report.formats import json_documents

    found = diagnoses.SCREENS["leak"]()
    document = embedded(page.diagnosis(found, 1))["document"]
    assert document == json.loads(json_documents.text(json_documents.diagnosis(found, 1)))


def test_readings_at_one_position_keep_their_lowest_and_highest() -> None:
    points = tuple((float(x), float(y)) for x in (1, 2, 3) for y in (5, 1, 9, 4))
    picture = Picture(
        unit=Unit.COUNT,
        axis=AxisKind.STEP,
        axis_word="step",
        curves=(Curve(name="tensors", points=points, readings=points),),
    )
    (drawn,) = chart(picture)["curves"]
    assert drawn["x"] == [1, 1, 2, 2, 3, 3]
    assert drawn["y"] == [1, 9] * 3


def test_what_ended_a_run_comes_before_its_charts() -> None:
    text = page.diagnosis(Diagnosis(recordings=(CRASHED,)), 1)
    ended, grew = text.index("<h3>How it ended</h3>"), text.index("<h3>Grew most</h3>")
    assert ended < grew < text.index('<figure class="chart"')
    assert text.index("<h3>In memory</h3>") > grew


def test_environment_may_be_nested_without_end() -> None:
    about: dict[str, object] = {"command": ["python", "x.py"], "list": [{"a": 1}, {"b": 2}]}
    inner = about
    for _ in range(5000):
        inner["deeper"] = inner = {}
    (known,) = hostile().recordings
    assert known.readings is not None
    found = replace(known, readings=replace(known.readings, about=about))
    text = page.diagnosis(Diagnosis(recordings=(found,)), 1)
    assert "<td>python x.py</td>" in text
    assert "<td>2 entries</td>" in text


@pytest.mark.slow
def test_ten_series_of_very_many_samples_are_a_small_file() -> None:
    steps = np.arange(200_000.0)
    noise = np.random.default_rng(3)
    series = tuple(
        Series(
            metric="rss_bytes",
            column="rss_bytes",
            role=Role.RESIDENT,
            unit=Unit.BYTES,
            axis=Axis(name="step", kind=AxisKind.STEP),
            x=steps,
            y=1e9 + 10.0 * rank * steps + noise.normal(0, 1e6, len(steps)),
            process=f"rank{rank}",
        )
        for rank in range(10)
    )
    recording = Recording(source="run.csv", series=series)
    found = Diagnosis(recordings=(with_readings(diagnose(recording), recording),))
    assert len(page.diagnosis(found, 0).encode()) <= 8e6
