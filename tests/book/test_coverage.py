"""The table of coverage on the ledger's page is what its script prints."""

import csv
import runpy
from types import SimpleNamespace

import pytest

from fivelenses.files import project_folder


def test_the_lines_that_matter_most_are_simulated_again():
    """The fewest models that differ most, with 1,000 simulations: a standard error of about a point."""
    script = SimpleNamespace(**runpy.run_path(str(project_folder() / "bench" / "coverage.py")))
    with (project_folder() / "book" / "coverage.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["models", "models differ", "our interval", "Multi-Bootstrap"]
    assert [row[:2] for row in rows] == [[str(models), name] for models in script.MODELS for name in script.SPREADS]
    most, spread = list(script.SPREADS.items())[-1]
    for models in (2, 3):
        printed = next(row for row in rows if row[:2] == [str(models), most])
        again = script.coverage(models, spread, 1000, seed=1)
        assert [100 * share for share in again] == pytest.approx([float(share[:-1]) for share in printed[2:]], abs=4)
