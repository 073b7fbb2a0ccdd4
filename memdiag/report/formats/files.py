"""The formats of report files, by the option that requests one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from memdiag.report.formats import json_documents, junit, markdown
from memdiag.values.findings import Diagnosis, Standing
from memdiag.values.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """A format of report files.

    beginnings: how such a file begins; files that begin otherwise are not overwritten.
    render: the text for a diagnosis, the outcomes that fail the command, and its exit code.
    """

    beginnings: tuple[str, ...]
    render: Callable[[Diagnosis, Collection[Verdict | Standing], int], str]


FORMATS = {
    "--json-file": FileFormat(
        beginnings=(json_documents.BEGINNING,),
        render=lambda found, _, code: json_documents.text(json_documents.diagnosis(found, code)),
    ),
    "--junitxml": FileFormat(
        beginnings=(junit.BEGINNING,),
        render=lambda found, failing, _: junit.document(found, failing=failing),
    ),
    "--markdown": FileFormat(
        beginnings=markdown.BEGINNINGS,
        render=lambda found, _failing, _code: markdown.document(found),
    ),
}
