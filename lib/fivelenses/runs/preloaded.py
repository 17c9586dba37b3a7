"""What the fork server imports before any notebook is begun: what runs notebooks, and what the chapters' import."""

import contextlib
import importlib
import os

# Read by matplotlib and by torch when they are imported; a kernel comes too late to set them. One page, one core.
os.environ |= {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "OMP_NUM_THREADS": "1"}

import ipykernel.kernelapp  # noqa: E402, F401
import nbformat  # noqa: E402
import papermill  # noqa: E402, F401

from fivelenses import records  # noqa: E402
from fivelenses.runs.settings import CHAPTERS  # noqa: E402

for chapter in CHAPTERS.values():
    # What is wrong with a notebook or a module is said when the notebook runs, by name.
    with contextlib.suppress(Exception):
        cells = nbformat.read(chapter.notebook, as_version=4).cells
        for module in records.imported_by("\n".join(cell.source for cell in cells if cell.cell_type == "code")):
            importlib.import_module(module)
