"""A notebook's runner waits for what cells print, and says what went wrong when it fails without a word of a cell."""

import pytest
from papermill.engines import NBClientEngine, papermill_engines

from fivelenses.runs import notebooks, tethered


def test_papermill_waits_minutes_for_the_output_of_a_cell(monkeypatch):
    given = {}
    monkeypatch.setattr(papermill_engines, "_engines", dict(papermill_engines._engines))
    monkeypatch.setattr(
        NBClientEngine, "execute_managed_notebook", classmethod(lambda *_, **settings: given.update(settings))
    )
    tethered.wait_for_output()
    papermill_engines.get_engine(None).execute_managed_notebook("notebook", "python3", stdout_file=None)
    assert given == {"iopub_timeout": tethered.OUTPUT_PATIENCE, "stdout_file": None}


@pytest.mark.parametrize(
    ("complaint", "said"),
    [
        ("", "it was killed"),
        ("a warning\nValueError: no kernel.\n", "ValueError: no kernel"),
        (
            "Traceback\nnbclient.exceptions.CellTimeoutError: A cell timed out after 4 s.\nThe message was: none.\n"
            "Here is a preview of the cell contents:\n-------------------\nrun.finish()\n-------------------\n",
            "nbclient.exceptions.CellTimeoutError: A cell timed out after 4 s",
        ),
        ("no papermill here", "no papermill here"),
    ],
)
def test_a_failure_without_a_failed_cell_says_what_papermill_says(tmp_path, complaint, said):
    assert notebooks._failure(tmp_path / "none.ipynb", complaint) == f"papermill failed: {said}."
