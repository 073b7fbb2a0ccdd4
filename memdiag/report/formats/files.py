"""The formats of report files, by the option that requests one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from memdiag.report.formats import (
    comparison_markdown,
    comparison_wording,
    json_documents,
    junit,
    markdown,
)
from memdiag.report.formats.html import page
from memdiag.report.picture.of_comparison import difference, of_comparison
from memdiag.report.picture.of_finding import of_deciding
from memdiag.report.plotting import figure
from memdiag.report.text import series_names
from memdiag.report.text.screen import Screen
from memdiag.values.comparison import Comparison
from memdiag.values.findings import Diagnosis, Standing
from memdiag.values.verdict import Verdict

_SCREEN = Screen(width=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a report file is made of.

    failing: the outcomes that fail the command. exit_code: its exit code.
    picture_style: as given on the command line. picture: path from the report to a picture of the
    same diagnosis, or "".
    """

    diagnosis: Diagnosis
    failing: Collection[Verdict | Standing] = ()
    exit_code: int = 0
    picture_style: str = ""
    picture: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """A format of report files.

    opening: how such a file begins; files that begin otherwise are not overwritten.
    render: the content. shows_readings: it needs `RecordingFinding.readings`.
    compare: the content for a comparison, its exit code and the style of pictures; None if it has
    no such form.
    require: raises UsageError if it cannot be written on this machine in a style.
    """

    opening: re.Pattern[bytes]
    render: Callable[[Outcome], str | bytes]
    shows_readings: bool = False
    require: Callable[[str], None] = lambda _: None
    compare: Callable[[Comparison, int, str], str | bytes] | None = None


def _beginning(*texts: str) -> re.Pattern[bytes]:
    return re.compile(b"|".join(re.escape(text.encode()) for text in texts))


def _require_pictures(style: str) -> None:
    figure.style_of(style)
    figure.available()


def _image(save: Callable[..., bytes]) -> Callable[[Outcome], bytes]:
    def render(outcome: Outcome) -> bytes:
        drawn = [of_deciding(found, _SCREEN) for found in outcome.diagnosis.recordings]
        pictures = [picture for picture in drawn if picture is not None]
        return save(pictures, figure.style_of(outcome.picture_style))

    return render


def _image_of_comparison(
    save: Callable[..., bytes],
) -> Callable[[Comparison, int, str], bytes]:
    def render(compared: Comparison, _: int, style: str) -> bytes:
        found = compared.deciding
        pictures = [] if found is None else [of_comparison(found), difference(found)]
        if found is not None:
            title = f"{comparison_wording.name(compared.effect)} {comparison_wording.gist(found)}"
            subject = series_names.opening(found, _SCREEN)
            pictures[0] = replace(pictures[0], title=title, subject=subject)
        return save(pictures, figure.style_of(style))

    return render


FORMATS = {
    "--json-file": FileFormat(
        opening=_beginning(json_documents.BEGINNING),
        render=lambda by: json_documents.text(json_documents.diagnosis(by.diagnosis, by.exit_code)),
        compare=lambda found, code, _: json_documents.text(json_documents.comparison(found, code)),
    ),
    "--junitxml": FileFormat(
        opening=_beginning(junit.BEGINNING),
        render=lambda by: junit.document(by.diagnosis, failing=by.failing),
    ),
    "--markdown": FileFormat(
        opening=_beginning(*markdown.BEGINNINGS, *comparison_markdown.BEGINNINGS),
        render=lambda by: markdown.document(by.diagnosis, picture=by.picture),
        compare=lambda found, _, __: comparison_markdown.document(found),
    ),
    "--html": FileFormat(
        opening=_beginning(page.BEGINNING),
        render=lambda by: page.diagnosis(by.diagnosis, by.exit_code),
        shows_readings=True,
        compare=lambda found, code, _: page.comparison(found, code),
    ),
    "--png": FileFormat(
        opening=figure.PNG_OPENING,
        render=_image(figure.png),
        shows_readings=True,
        require=_require_pictures,
        compare=_image_of_comparison(figure.png),
    ),
    "--svg": FileFormat(
        opening=figure.SVG_OPENING,
        render=_image(figure.svg),
        shows_readings=True,
        require=_require_pictures,
        compare=_image_of_comparison(figure.svg),
    ),
}
