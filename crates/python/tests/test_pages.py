"""The pages' examples, run as programs, and the notebook."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT


@pytest.mark.parametrize("page", ["docs/python.md", "docs/clusters.md", "book/tutorials/first-rule.md"])
def test_the_examples_of_a_page_run(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    assert blocks
    (tmp_path / "page.py").write_text("\n".join(blocks))
    environment = os.environ | {"MPLBACKEND": "Agg"}
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "crates/python/examples/ap05-f14.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are made by who reads it"
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    kinds = {kind for cell in notebook.cells for output in cell.get("outputs", []) for kind in output.get("data", {})}
    assert "image/png" in kinds and "text/html" in kinds
