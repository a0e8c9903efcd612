"""Executes a notebook from its beginning; every cell must end without an error, and one must show a figure."""

import sys

import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
shown = [output.data for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs if "data" in output]
assert any("image/png" in data for data in shown), "no cell shows a figure"
assert any("<table" in data.get("text/html", "") for data in shown), "no cell shows a table"
print(f"{len(notebook.cells)} cells")
