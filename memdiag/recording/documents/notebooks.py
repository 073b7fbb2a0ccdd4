"""What the cells of a Jupyter notebook printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memdiag.recording.documents.json_document import parsed
from memdiag.recording.inputs.source import Source

_CELLS, _FORMAT = b'"cells"', b'"nbformat"'


def is_notebook(source: Source) -> bool:
    """Return True for the file of a notebook."""
    return _CELLS in source.content and _FORMAT in source.content + source.tail


def printed_in(source: Source) -> bytes:
    """The text of all outputs, in their order; empty if it is not a notebook."""
    document = parsed(source)
    cells = document.get("cells") if isinstance(document, dict) else None
    texts = [text for cell in _objects(cells) for text in _texts(cell)]
    return "".join(text if text.endswith("\n") else text + "\n" for text in texts).encode()


def _texts(cell: dict[str, Any]) -> Iterator[str]:
    for output in _objects(cell.get("outputs")):
        data = output.get("data")
        shown = data.get("text/plain") if isinstance(data, dict) else None
        text = output.get("text", shown)
        if isinstance(text, list):
            text = "".join(line for line in text if isinstance(line, str))
        if isinstance(text, str):
            yield text


def _objects(found: Any) -> list[dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
