"""docs/notebook.ipynb runs from its beginning to its end, and shows what its text says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("pandas")

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"
# In a process of its own: the client of the kernel warns of its own libraries.
EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient
source, target, place = sys.argv[1:]
notebook = nbformat.read(source, as_version=4)
resources = {"metadata": {"path": place}}
NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
nbformat.write(notebook, target)
"""


@pytest.mark.slow
def test_notebook_runs_and_shows_what_it_says(tmp_path: Path) -> None:
    executed = tmp_path / "executed.ipynb"
    subprocess.run(
        [sys.executable, "-c", EXECUTE, str(NOTEBOOK), str(executed), str(tmp_path)],
        check=True,
        timeout=280,
    )
    cells = nbformat.read(executed, as_version=4).cells
    shown = {cell.id: text(cell) for cell in cells if cell.cell_type == "code"}
    assert "WARMUP" in shown["warmup"]
    assert "LeakError: DataFrame: LEAK" in shown["leak"]
    assert "LEAK" in shown["record"]
    kept = "In[7]:9, in train(): history.append(activations) - 800 KB (1 object) per step"
    assert kept in " ".join(shown["record"].split()), "the report names the line of the cell"
    assert "FIXED" in shown["compare"]
    assert "table  +8.00 MB" in shown["cell"]
    assert "LEAK after" in shown["repeat"]
    assert "float64" in shown["explain"]
    assert len(list(tmp_path.glob(".memdiag/runs/*/recording.csv"))) == 2


def text(cell: nbformat.NotebookNode) -> str:
    """Everything that a cell shows, as text and HTML."""
    found = []
    for output in cell.outputs:
        found.append(output.get("text", ""))
        found += [str(one) for one in output.get("data", {}).values()]
    return "\n".join(found)
